import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { describeGates, featureGates, type GateSpecs, isEnabled } from './feature-gates.ts'
import { defineFlags, flag, parseFlags } from './flags.ts'

const known: GateSpecs = {
  New: { default: false, maturity: 'ALPHA' },
  Tried: { default: true, maturity: 'BETA' },
  Shy: { default: false, maturity: 'BETA' },
  Done: { default: true, maturity: 'GA', locked: true },
  Legacy: { default: false, maturity: 'DEPRECATED' },
}
const set = defineFlags({ generic: { 'feature-gates': flag(featureGates(known), new Map(), describeGates(known)) } })

function enabled(...args: string[]): string[] {
  const gates = parseFlags(set, args).values['feature-gates']
  return Object.keys(known).filter((name) => isEnabled(known, gates, name))
}

describe('flag --feature-gates', () => {
  it('leaves gates at their defaults if it is absent', () => assert.deepEqual(enabled(), ['Tried', 'Done']))

  it('may be given once or several times, and the last value wins', () => {
    assert.deepEqual(enabled('--feature-gates=New=true, Tried = false', '--feature-gates=Tried=true,Shy=1'), [
      'New',
      'Tried',
      'Shy',
      'Done',
    ])
  })

  it('sets other gates with AllAlpha and AllBeta, unless they are named themselves', () => {
    assert.deepEqual(enabled('--feature-gates=AllAlpha=true'), ['New', 'Tried', 'Done'])
    assert.deepEqual(enabled('--feature-gates=AllBeta=false'), ['Done'])
    assert.deepEqual(enabled('--feature-gates=Shy=false,AllBeta=true'), ['Tried', 'Done'])
  })

  for (const [text, why] of [
    ['Nope=true', 'unrecognized feature gate: Nope'],
    ['__proto__=true', 'unrecognized feature gate: __proto__'],
    ['New', 'missing bool value for New'],
    ['New=maybe', 'invalid value of New=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'],
    ['Done=false', 'cannot set feature gate Done to false, feature is locked to true'],
  ] as const) {
    it(`rejects ${text}`, () => {
      const message = `invalid argument "${text}" for "--feature-gates" flag: ${why}`
      assert.throws(() => enabled(`--feature-gates=${text}`), { message })
    })
  }

  it('prints a warning for deprecated gates', () => {
    assert.deepEqual(parseFlags(set, ['--feature-gates=Done=true,Legacy=true,New=true']).warnings, [
      'Setting GA feature gate Done=true. It will be removed in a future release.',
      'Setting deprecated feature gate Legacy=true. It will be removed in a future release.',
    ])
  })

  it('lists gates with maturity and default in its usage, except GA gates', () => {
    assert.equal(
      describeGates(known),
      `A set of key=value pairs that describe feature gates for alpha/experimental features. Options are:
AllAlpha=true|false (ALPHA - default=false)
AllBeta=true|false (BETA - default=false)
New=true|false (ALPHA - default=false)
Shy=true|false (BETA - default=false)
Tried=true|false (BETA - default=true)`,
    )
  })

  it('throws if the program reads a gate that it did not declare', () => {
    assert.throws(() => isEnabled(known, new Map(), 'Typo'), /"Typo" is not registered/)
  })
})
