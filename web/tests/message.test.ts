import { describe, expect, it } from "vitest";
import { type Message, numberText, translate } from "@/words/message";
import messages from "./data/messages.json";

describe("a message", () => {
  for (const { message, en, bn } of messages.cases as unknown as { message: Message; en: string; bn: string }[]) {
    it(`reads as Python has it: ${en}`, () => {
      expect(translate(message, "en", messages.bangla)).toBe(en);
      expect(translate(message, "bn", messages.bangla)).toBe(bn);
      expect(message.text).toBe(en);
    });
  }

  it("has Latin digits in a table", () => {
    expect(translate({ template: "{t}", values: { t: { duration: 64 } } }, "bn", {}, true)).toBe("64 সেকেন্ড");
    expect(numberText("58,139,648", "bn")).toBe("৫,৮১,৩৯,৬৪৮");
  });
});
