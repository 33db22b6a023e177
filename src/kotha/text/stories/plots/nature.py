"""Encyclopaedia entries about the natural world: seasons, birds, fruit, animals, rivers."""

from kotha.text.stories.plot import Plot

SEASON = Plot(
    name="season",
    cast="child: child; elder: child.kin",
    title="[{season}কাল|ঋতু: {season}|{season} ঋতু]",
    text="""
    [বাংলার ছয় ঋতুর একটি {season}।|ছয় ঋতুর দেশে {season} এক আলাদা ছবি।|{season} বাংলার একটি ঋতু।] {season.month}
    [থেকে শুরু হয় এর পালা|মাসেই একে সবচেয়ে ভালো চেনা যায়|মাসে এর রূপ সবচেয়ে স্পষ্ট]। [চারদিকে|পথেঘাটে|গ্রামে
    গ্রামে] {season.air} [ভাসে|পাওয়া যায়]। [?দিনগুলো হয় {season.mood}[, আর মানুষের মন হয়
    [উতলা|শান্ত|চঞ্চল]|]।]

    {season}কালে [ফোটে|দেখা যায়] {season.flower} আর {season.flower2} ফুল। ফলের মধ্যে পাওয়া যায় {season.fruit},
    {season.fruit2} ও {season.fruit3}। [বাজারে|হাটে] ওঠে {season.vegetable}, {season.vegetable2} আর
    {season.vegetable3}। চাষিরা {season.crop} [নিয়ে ব্যস্ত থাকেন|নিয়ে কাজ করেন]। [?কখনো {season.danger} [কষ্ট
    বাড়ায়|কাজে বাধা দেয়]।]

    খাবারের মধ্যে {season.food} আর {season.food2} [সবার প্রিয়|খুব জনপ্রিয়]। লোকে পরে {season.wear}। [?এ ঋতুতে
    বসে {season.fair}, সেখানে মেলে {toy}, {toy2} আর {snack}।] [{district র} {village} গ্রামের {child} {season}কাল
    খুব ভালোবাসে।|{village} গ্রামের {child} বলে, তার প্রিয় ঋতু {season}।|{child} থাকে {district র} {village}
    গ্রামে, {season} এলেই তার মন ভালো হয়ে যায়।] [সকালে উঠে|স্কুল থেকে ফিরে|ছুটির দিনে] {child} {elder র} সঙ্গে
    [{season.flower3} ফুল তোলে|{season.food3} খায়|{spot এ} বেড়াতে যায়|{bird} পাখি দেখে]। {child র} {elder}
    {বলা present elder}, “[প্রতিটি ঋতুর নিজের গল্প আছে|{season} আমাদের অপেক্ষা করতে শেখায়|ঋতু বদলায় বলেই পৃথিবী
    এত সুন্দর]।”
    """,
)

BIRD = Plot(
    name="bird",
    cast="child: child; elder: child.grand; seen: 3..12",
    title="{bird}",
    text="""
    {bird} [বাংলার একটি চেনা পাখি|আমাদের গ্রামবাংলার পাখি|একটি পরিচিত পাখি]। এর আছে {bird.look}[ আর
    {bird.look2}|]। [গ্রামে|মাঠেঘাটে|গাছের ফাঁকে] [চোখ রাখলেই|খুঁজলেই] {bird র} দেখা মেলে। {bird} {bird.trait}।

    {bird} খায় {bird.eats} আর {bird.eats2}। [?সুযোগ পেলে {bird.eats3}ও খায়।] [বাসা বাঁধে|ডিম পাড়ে|সংসার পাতে]
    {bird.nest এ}। [?মা-পাখি আর বাবা-পাখি [পালা করে|মিলেমিশে] ছানাদের খাওয়ায়।] [?{bird}
    [প্রকৃতির|গাছপালার|মানুষের] উপকার করে।]

    [{district র} {village} গ্রামে {child} রোজ {spot এ} {bird} দেখতে যায়।|{village} গ্রামের {child} {spot এ}
    {seen টি} {bird} গুনেছে।|{child র} বাড়ি {village} গ্রামে, {spot এ} গেলেই সে {bird} দেখতে পায়।] {child}
    খাতায় [পাখির ছবি আঁকে|পাখির নাম লেখে|পাখির ডাক লেখে]। {child র} {elder} {বলা present elder}, “[পাখিকে ঢিল
    ছুড়ো না, ওরাও আমাদের প্রতিবেশী|গাছ না থাকলে {bird}ও থাকবে না|{bird} থাকলে বুঝবে গ্রামটা ভালো আছে]।” [গাছ
    লাগালে|ঝোপঝাড় বাঁচলে|খাঁচায় না পুরলে] {bird} [কাছেই থাকবে|আরও বাড়বে]।
    """,
)

FRUIT = Plot(
    name="fruit",
    cast="bird: greedy; bird2: greedy; grower: citizen; child: child; trees: 5..60; years: 5..40",
    title="{fruit}",
    text="""
    {fruit} [বাংলার একটি প্রিয় ফল|একটি দেশি ফল|ছোট-বড় সবার পছন্দের ফল]। [দেখতে|ফলটি] {fruit.look}। স্বাদে
    {fruit.taste}। {fruit} [বেশি পাওয়া যায়|পাকে|বাজারে ওঠে] {fruit.time এ}। [?{fruit} শরীরের জন্য
    [উপকারী|ভালো]।] [?খাওয়ার আগে [ভালো করে ধুতে হয়|জলে ভেজানো ভালো]।]

    {fruit} দিয়ে হয় {fruit.made} আর {fruit.made2}। [?[বিকেলে|ছুটির দিনে|অতিথি এলে] {fruit} খাওয়ার আনন্দই
    আলাদা।] [?{bird}, {bird2} আর কাঠবিড়ালিও {fruit র} গন্ধে ছুটে আসে।]

    [{district র} {village} গ্রামের {grower র} বাগানে আছে {trees টি} {fruit} গাছ।|{village} গ্রামের {grower}
    {years} বছর ধরে {fruit} চাষ করেন।|{grower} থাকেন {village} গ্রামে, তাঁর {fruit} বাগানে {trees টি} গাছ।]
    {grower} [রোজ ভোরে|সময় পেলেই|সপ্তাহে তিন দিন] [গাছের গোড়ায় সার দেন|আগাছা পরিষ্কার করেন|শুকনো ডাল
    ছাঁটেন|গাছের সঙ্গে কথা বলেন]। [ফল পাকলে|মৌসুম এলে] {grower} পাড়ার {child}কে ডেকে {বলা present grower}, “[যত
    পারো খাও|আগে পাখির ভাগ, তারপর আমাদের|একটা বীজ মাটিতে পুঁতে দিয়ো]।” [তাই {fruit} শুধু ফল নয়, ভালোবাসারও
    নাম।|একটি {fruit} গাছ অনেকের মুখে হাসি আনে।|{child} সেই বীজ মাটিতে পুঁতেছে।]
    """,
)

ANIMAL = Plot(
    name="animal",
    cast="owner: citizen; child: child; number: 2..14",
    title="{animal}",
    text="""
    {animal} [একটি গৃহপালিত প্রাণী|মানুষের পুরোনো সঙ্গী|গ্রামের ঘরে ঘরে পরিচিত একটি প্রাণী]। মানুষ {animal} পোষে
    [বহু কাল|অনেক দিন] ধরে। {animal} দেয় {animal.gives}। এরা {animal.work}। [?{animal র} থাকার জায়গা
    {animal.home}।] {animal র} খাবার {animal.eats} আর {animal.eats2}। [?এদের বাচ্চাকে বলে {animal.young}।]

    [{district র} {village} গ্রামের {owner র} আছে {number টি} {animal}।|{village} গ্রামে {owner} {number টি}
    {animal} পোষেন।|{owner} {village} গ্রামের মানুষ, তাঁর বাড়িতে {number টি} {animal}।] {owner সে} [ভোরে উঠে|রোজ
    দুবেলা|কাজের ফাঁকে] [এদের খাবার দেন|থাকার জায়গা পরিষ্কার করেন|গায়ে হাত বুলিয়ে দেন|এদের নাম ধরে ডাকেন]।
    [?পাশের বাড়ির {child} {owner তাকে} সাহায্য করে, [বালতি ভরে জল আনে|খাবার এগিয়ে দেয়|অসুখ হলে খবর দেয়]।]
    {owner} {বলা present owner}, “[যত্ন করলে {animal}ও ভালোবাসা ফিরিয়ে দেয়|ওরা কথা বলে না, কিন্তু সব বোঝে|এরা না
    থাকলে বাড়িটা ফাঁকা লাগে]।”

    {animal} পুষতে [যত্ন লাগে|নিয়ম মানতে হয়]। [2~থাকার জায়গা শুকনো রাখতে হয়।|সময়মতো টিকা দিতে হয়।|পরিষ্কার
    জল দিতে হয়।|গরমে ছায়া আর শীতে ওম দিতে হয়।|কখনো মারতে নেই।] [যে প্রাণীকে ভালোবাসে, সে মানুষকেও ভালোবাসতে
    শেখে।|পাড়ার {child} বড় হয়ে পশু-চিকিৎসক হতে চায়।|গ্রামে {animal} যেন পরিবারের একজন।]
    """,
)

RIVER = Plot(
    name="river",
    cast="bird: waterbird; bird2: waterbird; boatman: citizen; child: child; elder: child.grand; years: 10..50",
    title="[{district র} নদী|নদীর ধারে {district}|{village} গ্রামের নদী]",
    text="""
    {district} জেলার {village} গ্রামের [পাশ দিয়ে|গা ঘেঁষে|কোল ঘেঁষে] বয়ে গেছে {district.river} নদী। [নদীটি
    মানুষের জীবনে জড়িয়ে আছে।|নদী জল দেয়, মাছ দেয়।|দুই পাড়ে গ্রাম, হাট আর মাঠ।] নদীতে [জেলেরা ধরেন|জাল ফেললে
    মেলে|পাওয়া যায়] {fish}, {fish2} আর {fish3} মাছ। পাড়ে [দেখা যায়|জলের ওপর ওড়ে|রোদ পোহায়] {bird} আর
    {bird2}।

    {season.month} মাসে {district.river} নদীর রূপ [আলাদা|বদলে যায়|চোখে লেগে থাকে]। তখন [পাড়ে পাড়ে|হাওয়ায়
    হাওয়ায়|ঘাটে ঘাটে] {season.air}, আর গ্রামে ফোটে {season.flower} ফুল। [?{season.danger} এলে মাঝিরা [সাবধান
    হন|নৌকা বাঁধেন]।] নদীর পলিতে [চাষ হয়|ভালো ফলে] {season.crop} আর {season.vegetable}।

    {village} ঘাটে {boatman} {years} বছর ধরে নৌকা বান। {boatman} {বলা present boatman}, “[নদী আমার মা, নদী আমার
    পাঠশালা|জলের রং দেখে বলে দিতে পারি কাল কেমন দিন যাবে|নদীকে নোংরা করলে নদীও একদিন মুখ ফেরাবে]।” [?{child}
    {elder র} সঙ্গে প্রতি {weekday} এই ঘাটে আসে। তারা [ঢেউ গোনে|কাগজের নৌকা ভাসায়|ওপারের গ্রামের নাম বলে]।] নদীকে
    বাঁচাতে হবে। [3~জলে ময়লা ফেলা যাবে না।|পাড়ের গাছ কাটা যাবে না।|পোনা মাছ ধরা যাবে না।|বালু তোলা বন্ধ করতে
    হবে।]
    """,
)

PLOTS = (SEASON, BIRD, FRUIT, ANIMAL, RIVER)
