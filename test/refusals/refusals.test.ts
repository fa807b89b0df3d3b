/**
 * Tests that every kind refuses what upstream refuses, with the same message. Each case is sent to a complete control
 * plane and compared with the recorded response of kube-apiserver v1.36.4.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { groups, type Kind } from '#apis/kinds.ts'
import { createGates } from '#component/flags/gates.ts'
import { realClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { type Asker, createAsker, refusalIn } from './asking.ts'
import { type Answers, answersKey, groupFolder, type Refusal, type Refused } from './case.ts'
import { everyCase } from './index.ts'

/** Kinds served by default that have no cases, and why. */
const EXCUSED: Readonly<Record<string, string>> = {
  'v1/ComponentStatus': 'it can only be read',
}

const FEWEST_REFUSALS = 5
const FEWEST_UPDATES = 2

let plane: ControlPlane
let asker: Asker

before(async () => {
  plane = await startControlPlane()
  asker = createAsker({ ...plane, clock: realClock })
})

after(async () => {
  await asker.close()
  await plane[Symbol.asyncDispose]()
})

for (const cases of everyCase) {
  const answers = answersOf(cases.kind)
  describe(`validation of ${cases.kind.group || 'core'} ${answersKey(cases.kind)}`, () => {
    it('accepts the valid object', async () => {
      const { code, body } = await asker.askValid(cases)
      assert.equal(code, 201, JSON.stringify(body))
    })
    for (const refusal of cases.refused) {
      it(`rejects on ${refusal.on ?? 'create'}: ${refusal.why}`, async () => {
        const answer = await asker.ask(cases, refusal)
        assert.deepEqual(refusalIn(answer), expected(refusal, answers[refusal.why]))
      })
    }
    for (const trial of cases.taken ?? []) {
      it(`accepts on ${trial.on ?? 'create'}: ${trial.why}`, async () => {
        const { code, body } = await asker.ask(cases, trial)
        assert.ok(code < 400, JSON.stringify(body))
      })
    }
  })
}

describe('cases of validation', () => {
  it('include every kind that is served by default', () => {
    const isEnabled = createGates(new Map())
    const served = groups
      .flatMap(({ versions }) => versions.filter(({ servedByDefault }) => servedByDefault))
      .flatMap(({ kinds }) => kinds)
      .filter(({ gate }) => gate === undefined || isEnabled(gate))
    const covered = everyCase.filter(({ refused }) => refused.length >= FEWEST_REFUSALS).map(({ kind }) => textOf(kind))
    assert.deepEqual(
      served.map(textOf).filter((kind) => !covered.includes(kind)),
      Object.keys(EXCUSED),
    )
  })

  it('include updates of every kind that can be updated', () => {
    const updated = everyCase.filter(({ kind }) => kind.verbs.includes('update'))
    const few = updated.filter(
      ({ refused }) => refused.filter(({ on = 'create' }) => on !== 'create').length < FEWEST_UPDATES,
    )
    assert.deepEqual(
      few.map(({ kind }) => textOf(kind)),
      [],
    )
  })

  it('equal the recorded responses', () => {
    for (const { kind, refused } of everyCase) {
      const recorded = Object.keys(answersOf(kind)).sort()
      assert.deepEqual(refused.map(({ why }) => why).sort(), recorded, textOf(kind))
    }
  })
})

function textOf({ group, version, kind }: Kind): string {
  return group === '' ? `${version}/${kind}` : `${group}/${version}/${kind}`
}

function answersOf(kind: Kind): Record<string, Refused> {
  const file = join(import.meta.dirname, groupFolder(kind), 'answers.json')
  const answers = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Answers) : {}
  return answers[answersKey(kind)] ?? {}
}

/** The recorded answer, with words of ours where upstream's are Go's. */
function expected({ ours }: Refusal, recorded: Refused | undefined): Refused {
  assert.ok(recorded !== undefined, 'Nothing is recorded: run test/refusals/record.ts')
  if (ours === undefined) return recorded
  const { because: _, instead, ...status } = ours
  return { ...(instead === undefined ? recorded : reworded(recorded, instead)), ...status }
}

function reworded(refused: Refused, [upstream, ours]: readonly [string | RegExp, string]): Refused {
  const reword = <T extends { readonly message: string }>(one: T): T => ({
    ...one,
    message: one.message.replace(upstream, () => ours),
  })
  assert.notEqual(reword(refused).message, refused.message, 'The words to replace are not there')
  const { details } = refused
  if (details?.causes === undefined) return reword(refused)
  return { ...reword(refused), details: { ...details, causes: details.causes.map(reword) } }
}
