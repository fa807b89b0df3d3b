/** Tests that our engine evaluates recorded expressions as cel-go does in Kubernetes' environment (`answers.json`). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { EXPRESSIONS } from './expressions.ts'
import { differences, evaluate, type Outcome } from './outcome.ts'

/** `id` is the expression. */
type Answer = Outcome & { readonly id: string }

const text = readFileSync(join(import.meta.dirname, 'answers.json'), 'utf8')
const answers = new Map((JSON.parse(text) as Answer[]).map((answer) => [answer.id, answer]))

describe('CEL', () => {
  for (const expr of EXPRESSIONS) {
    it(`evaluates ${expr} to the same result as cel-go`, () => {
      const answer = answers.get(expr)
      assert.ok(answer, 'Record the answers again: node test/upstream/cel-spec.ts --record')
      assert.deepEqual(differences(evaluate(expr), answer), [])
    })
  }
})
