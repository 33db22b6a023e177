import { describe, expect, it } from "vitest";
import { type Templates, translate } from "@/words/message";

const BANGLA: Templates = { "Trained for {done}.": "প্রশিক্ষণ: {done}।", "{n:,} steps": "{n:,}টি ধাপ", "{name} = {value:.2f}": "{name} = {value:.2f}", floor: "শেষ সীমা" };

describe("what a document says", () => {
  const steps = (n: number) => ({ template: "{n:,} steps", one: "{n} step", values: { n } });

  it("fills messages into messages, in both languages", () => {
    const lead = { template: "Trained for {done}.", values: { done: [steps(12000), "GPT", { template: "{t}", values: { t: { duration: 90 } } }] } };
    expect(translate(lead, "en", BANGLA)).toBe("Trained for 12,000 steps, GPT, 90 seconds.");
    expect(translate(lead, "bn", BANGLA)).toBe("প্রশিক্ষণ: ১২,০০০টি ধাপ, GPT, ৯০ সেকেন্ড।");
    expect(translate(steps(1), "en", BANGLA)).toBe("1 step");
  });

  it("keeps Latin digits in a formula, and English where there is no Bangla", () => {
    const level = { template: "{name} = {value:.2f}", values: { name: { template: "floor", values: {} }, value: 1.2 } };
    expect(translate(level, "bn", BANGLA)).toBe("শেষ সীমা = 1.20");
    expect(translate({ template: "not known", values: {} }, "bn", BANGLA)).toBe("not known");
  });
});
