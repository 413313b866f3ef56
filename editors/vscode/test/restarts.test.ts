import assert from "node:assert/strict";
import { test } from "node:test";

import { Restarts } from "../src/restarts.js";

test("a server that ends again and again is given up", () => {
  const restarts = new Restarts(2, 3, () => 0);
  assert.deepEqual([restarts.allow(), restarts.allow(), restarts.allow()], [true, true, false]);
  assert.match(restarts.message, /ended 3 times within 3 minutes/);
});

test("ends of long ago do not count", () => {
  let now = 0;
  const restarts = new Restarts(1, 3, () => now);
  assert.equal(restarts.allow(), true);
  now = 3 * 60_000 + 1;
  assert.equal(restarts.allow(), true);
});

test("a restart that the user wants counts anew", () => {
  const restarts = new Restarts(1, 3, () => 0);
  restarts.allow();
  restarts.forget();
  assert.equal(restarts.allow(), true);
});
