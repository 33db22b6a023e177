import { expect, test } from "vitest";
import { pastedTable } from "@/math/pasted";

const MATRIX = [["0.1", "0.2"], ["0.3", "0.4"]];

test.each([
  ["a spreadsheet's", "0.1\t0.2\r\n0.3\t0.4\r\n", MATRIX],
  ["one with decimal commas", "0,1\t0,2\n0,3\t0,4", MATRIX],
  ["a file's", "0.1,0.2\n0.3,0.4", MATRIX],
  ["a file's with semicolons", "0,1;0,2\n0,3;0,4", MATRIX],
  ["Python's", "[[0.1, 0.2], [0.3, 0.4]]", MATRIX],
  ["NumPy's", "[[0.1 0.2]\n [0.3 0.4]]", MATRIX],
  ["in Bangla digits", "০.১\t০.২\n০.৩\t০.৪", [["০.১", "০.২"], ["০.৩", "০.৪"]]],
  ["a row", "1\t2\t3", [["1", "2", "3"]]],
  ["a column", "1\n2\n", [["1"], ["2"]]],
  ["with an empty cell", "1\t\n3\t4", [["1", ""], ["3", "4"]]],
  ["with fractions and minus infinity", "1/2 −∞\n-0.5 2e-3", [["1/2", "−∞"], ["-0.5", "2e-3"]]],
])("%s matrix is read cell by cell", (_, text, cells) => {
  expect(pastedTable(text)).toEqual(cells);
});

test.each(["0.57", "", "  \n", "1 2\n3", "আমি ভাত খাই", "Q\tK\n1\t2", "1.0×0.2+0.5×0.1"])("%j is no table", (text) => {
  expect(pastedTable(text)).toBeNull();
});
