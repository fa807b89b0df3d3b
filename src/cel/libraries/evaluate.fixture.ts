/** Evaluates an expression in a library test, and returns the cost with the value or error. */
import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createEnvironment } from '../environment.ts'
import { DYN } from '../type.ts'
import { CelError, type Value } from '../value.ts'
import { fromJson } from '../values/json.ts'
import { toJson } from '../values/to-json.ts'

/** Expression; its value in JSON, or `!` and its error; its cost where that is worth a look. */
export type Row = readonly [source: string, expected: unknown, cost?: number]

const environment = createEnvironment({ variables: { d: DYN } })

/** A test for each row. `d` is dyn. */
export function testRows(rows: readonly Row[], d: unknown = null): void {
  for (const [source, expected, cost] of rows) {
    void it(source, () => {
      const outcome = evaluate(source, { d: fromJson(d) })
      assert.deepEqual(outcome.value, expected)
      if (cost !== undefined) assert.equal(outcome.cost, cost)
    })
  }
}

function evaluate(source: string, variables: Readonly<Record<string, Value>>): { value: unknown; cost: number } {
  const compiled = environment.compile(source)
  assert.ok(compiled.issues === undefined, JSON.stringify(compiled.issues))
  const budget = { limit: 1_000_000, spent: 0 }
  try {
    return { value: toJson(compiled.program().evaluate(variables, budget)), cost: budget.spent }
  } catch (error) {
    assert.ok(error instanceof CelError, String(error))
    return { value: `!${error.message}`, cost: budget.spent }
  }
}
