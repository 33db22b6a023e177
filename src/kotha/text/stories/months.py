"""What ripens when: the twelve months, each with the fruit picked and sold in it and the crop brought in."""

from kotha.text.stories.scene import Noun, records


def _by_name(text: str) -> dict[str, Noun]:
    return {noun.text: noun for noun in records(text)}


# Fruit: how many a child can carry home in a basket, and the price of one in taka.
_FRUIT = _by_name("""
আম; least: 10; most: 20; price: 20, 25, 30
জামরুল; least: 12; most: 24; price: 5, 6, 8
আনারস; price: 30, 40, 50
পেয়ারা; least: 8; most: 18; price: 10, 12, 15
আতা; least: 7; most: 14; price: 25, 30, 35
জাম্বুরা; price: 40, 50, 60
ডালিম; least: 7; most: 12; price: 40, 45, 50
কমলা; least: 8; most: 16; price: 20, 25, 30
বরই; least: 20; most: 40; price: 1, 2
সফেদা; least: 10; most: 20; price: 10, 12, 15
বেল; price: 30, 40, 50
পেঁপে; price: 35, 40, 50
""")
# Crops: how they are brought in, what a bigha yields in maunds, and the price of a maund in taka.
_CROPS = _by_name("""
বোরো ধান; gather: কাটা; least: 18; most: 24; price: 1000, 1050, 1100, 1150, 1200
আউশ ধান; gather: কাটা; least: 10; most: 14; price: 1000, 1050, 1100, 1150, 1200
আমন ধান; gather: কাটা; least: 12; most: 18; price: 1100, 1150, 1200, 1250, 1300
আগাম আমন ধান; gather: কাটা; least: 12; most: 15; price: 1150, 1200, 1250, 1300
পাট; gather: কাটা; least: 8; most: 12; price: 2500, 2600, 2800, 3000, 3200
তিল; gather: তোলা; least: 4; most: 6; price: 2400, 2600, 2800, 3000
ভুট্টা; gather: তোলা; least: 26; most: 34; price: 1000, 1100, 1150, 1200
মাষকলাই; gather: তোলা; least: 3; most: 5; price: 2800, 3000, 3200, 3400
আলু; gather: তোলা; least: 70; most: 95; price: 500, 550, 600, 700, 800
পেঁয়াজ; gather: তোলা; least: 40; most: 60; price: 1200, 1400, 1600, 1800
রসুন; gather: তোলা; least: 20; most: 30; price: 2800, 3000, 3400, 3800
সরিষা; gather: তোলা; least: 4; most: 6; price: 2600, 2800, 3000, 3200
মসুর ডাল; gather: তোলা; least: 4; most: 6; price: 3600, 3800, 4000, 4200
গম; gather: কাটা; least: 10; most: 14; price: 1300, 1400, 1500, 1600
""")


def _month(written: Noun) -> Noun:
    """A month whose fruit and crops have parts of their own."""
    fruit = {part: tuple(_FRUIT[noun.text] for noun in written.parts[part]) for part in ("pick", "sold")}
    return Noun(written.text, parts={**fruit, "crop": tuple(_CROPS[noun.text] for noun in written.parts["crop"])})


MONTHS = {
    noun.text: _month(noun)
    for noun in records("""
বৈশাখ; pick: জামরুল, সফেদা; sold: সফেদা, বেল, পেঁপে; crop: বোরো ধান, ভুট্টা
জ্যৈষ্ঠ; pick: আম, জামরুল; sold: আম, আনারস, পেঁপে; crop: বোরো ধান, তিল
আষাঢ়; pick: আম, পেয়ারা; sold: আম, আনারস, পেয়ারা; crop: পাট, তিল
শ্রাবণ; pick: পেয়ারা, আতা; sold: পেয়ারা, আনারস; crop: পাট, আউশ ধান
ভাদ্র; pick: পেয়ারা, আতা; sold: পেয়ারা, আতা, জাম্বুরা; crop: পাট, আউশ ধান
আশ্বিন; pick: আতা, পেয়ারা; sold: আতা, জাম্বুরা, ডালিম; crop: আগাম আমন ধান
কার্তিক; pick: ডালিম, আতা; sold: ডালিম, জাম্বুরা; crop: আগাম আমন ধান, মাষকলাই
অগ্রহায়ণ; pick: ডালিম, কমলা; sold: ডালিম, কমলা, জাম্বুরা; crop: আমন ধান, মাষকলাই
পৌষ; pick: কমলা, বরই; sold: কমলা, পেঁপে; crop: আমন ধান, পেঁয়াজ
মাঘ; pick: বরই, কমলা; sold: কমলা, সফেদা, পেঁপে; crop: আলু, সরিষা
ফাল্গুন; pick: বরই, সফেদা; sold: সফেদা, বেল, পেঁপে; crop: আলু, মসুর ডাল
চৈত্র; pick: সফেদা, বরই; sold: সফেদা, বেল, পেঁপে; crop: গম, রসুন, মসুর ডাল
""")
}
