import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { Ledger } from './ledger.ts'
import type { Rendering } from './rendering.ts'

const SETTINGS = {
  family: 'IPv4',
  table: 't',
  masqueradeMark: '0x00004000',
  masqueradeAll: false,
  detector: undefined,
  nodePortIps: undefined,
  serviceCidrs: [],
} as const
const NONE = { chains: [], sets: [] }

function rendering(elements: readonly string[], chains: Readonly<Record<string, readonly string[]>> = {}): Rendering {
  return { elements, chains: new Map(Object.entries(chains)), shared: [], sets: new Map() }
}

function linesOf(ledger: Ledger): string[] {
  const lines = (ledger.changes() ?? '').split('\n').filter((line) => line !== '')
  ledger.applied(0)
  return lines
}

describe('nftables updates of kube-proxy', () => {
  it('contain only changes', () => {
    const ledger = new Ledger(SETTINGS)
    ledger.set('a', rendering(['m 1 : goto x', 's 1'], { x: ['accept'] }))
    assert.deepEqual(linesOf(ledger), [
      'add chain ip t x',
      'add element ip t m { 1 : goto x }',
      'add element ip t s { 1 }',
      'flush chain ip t x',
      'add rule ip t x accept',
    ])
    ledger.set('a', rendering(['m 1 : goto x', 's 1'], { x: ['accept'] }))
    assert.deepEqual(linesOf(ledger), [])
    ledger.set('a', rendering(['m 1 : drop', 's 1']))
    assert.deepEqual(linesOf(ledger), [
      'add chain ip t x',
      'delete element ip t m { 1 }',
      'add element ip t m { 1 : drop }',
      'flush chain ip t x',
    ])
    assert.equal(ledger.cleaning(500), undefined)
    assert.equal(ledger.cleaning(1000)?.text, 'delete chain ip t x\n')
  })

  it('give a map element to the first of two Services, and to the next one afterwards', () => {
    const ledger = new Ledger(SETTINGS)
    ledger.set('a', rendering(['m 1 : goto a', 's 1']))
    ledger.set('b', rendering(['m 1 : goto b', 's 1']))
    assert.deepEqual(linesOf(ledger), ['add element ip t m { 1 : goto a }', 'add element ip t s { 1 }'])
    ledger.set('a', rendering(['m 1 : goto c', 's 1']))
    assert.deepEqual(linesOf(ledger), ['delete element ip t m { 1 }', 'add element ip t m { 1 : goto c }'])
    ledger.set('a', undefined)
    assert.deepEqual(linesOf(ledger), ['delete element ip t m { 1 }', 'add element ip t m { 1 : goto b }'])
    ledger.set('b', undefined)
    assert.deepEqual(linesOf(ledger), ['delete element ip t m { 1 }', 'delete element ip t s { 1 }'])
  })

  it('lead to the same table as a complete rewrite', () => {
    const renderings = fc.option(
      fc.uniqueArray(fc.tuple(fc.nat(4), fc.constantFrom('', ' : goto x', ' : drop')), { selector: ([key]) => key }),
      { nil: undefined },
    )
    const step = fc.tuple(fc.constantFrom('a', 'b', 'c'), renderings, fc.boolean())
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const [ledger, state] = [new Ledger(SETTINGS), new Map<string, string>()]
        for (const [service, elements, isApplied] of steps) {
          ledger.set(service, elements && rendering(elements.map(([key, value]) => `m ${key}${value}`)))
          if (isApplied) apply(state, linesOf(ledger))
        }
        apply(state, linesOf(ledger))
        const all = new Map<string, string>()
        apply(all, ledger.everything(NONE).split('\n'))
        assert.deepEqual(Object.fromEntries(state), Object.fromEntries(all))
      }),
    )
  })
})

/** A model of the kernel that rejects invalid changes. */
function apply(state: Map<string, string>, lines: readonly string[]): void {
  for (const line of lines) {
    const [, verb, text = ''] = /^(add|delete) element ip t m \{ (.*) \}$/.exec(line) ?? []
    for (const element of verb === undefined ? [] : text.split(', ')) {
      const [key = '', value = ''] = element.split(' : ')
      assert.equal(state.has(key), verb === 'delete', line)
      if (verb === 'add') state.set(key, value)
      else state.delete(key)
    }
  }
}
