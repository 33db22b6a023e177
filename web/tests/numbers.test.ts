import { describe, expect, it } from "vitest";
import { banglaDigits, latinDigits, numeral, placesOf, typedNumber } from "@/words/numbers";

describe("numbers", () => {
  it("groups Bangla digits by lakh and crore, Latin ones by thousands", () => {
    expect(numeral(2312741, 0, "bn")).toBe("২৩,১২,৭৪১");
    expect(numeral(58139648, 0, "bn")).toBe("৫,৮১,৩৯,৬৪৮");
    expect(numeral(58139648, 0, "en")).toBe("58,139,648");
    expect(numeral(999, 0, "bn")).toBe("৯৯৯");
    expect(numeral(1000, 0, "bn")).toBe("১,০০০");
  });

  it("writes a minus that is one, and none before a zero", () => {
    expect(numeral(-0.5, 2, "en")).toBe("−0.50");
    expect(numeral(-0.001, 2, "en")).toBe("0.00");
  });

  it("leaves ids alone", () => {
    expect(numeral(123456, 0, "bn", false)).toBe("১২৩৪৫৬");
  });

  it("reads what it writes", () => {
    expect(latinDigits(banglaDigits("0123456789"))).toBe("0123456789");
  });
});

describe("what is typed into a number's field", () => {
  it("is read in either digits, and nothing is no number", () => {
    expect(["২.৭", "2.7", " 1,00,000 ", "−৩", "1e3"].map(typedNumber)).toEqual([2.7, 2.7, 100_000, -3, 1000]);
    expect(["", "  ", ",", "abc", "1.2.3", "1e999", "-"].map(typedNumber)).toEqual(Array(7).fill(null));
  });
  it("is shown with as many decimals as it has", () => {
    expect([2.7, 2, 0.05, 3e-5, 100, -0.5, 0.15000000000000002].map(placesOf)).toEqual([1, 0, 2, 5, 0, 1, 2]);
  });
});
