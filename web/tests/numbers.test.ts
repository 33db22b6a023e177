import { describe, expect, it } from "vitest";
import { banglaDigits, latinDigits, numeral } from "@/words/numbers";

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
