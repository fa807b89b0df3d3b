import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { upstreamFlags } from '#kits/cmd/upstream-flags.ts'
import { findUnsupported, type ServerFlag } from '#lib/flags/flag-support.ts'
import { defineFlags, type Flag, parseFlags } from '#lib/flags/flags.ts'

import { APISERVER_FLAGS } from './flags.ts'

/** Flags that upstream does not have: our stores, and removed flags that tools still pass. */
const OWN = [
  'history-file',
  'history-policy-file',
  'datastore',
  'encryption-key-file',
  'cloud-config',
  'cloud-provider',
  'insecure-port',
  'log-json-info-buffer-size',
  'log-json-split-stream',
]

function support(args: readonly string[]): ReturnType<typeof findUnsupported> {
  const { values, changed } = parseFlags(defineFlags(APISERVER_FLAGS), args)
  return findUnsupported(APISERVER_FLAGS, values, changed)
}

describe('flags of kube-apiserver', () => {
  const rows = upstreamFlags('kube-apiserver')

  it("contain all of upstream's, and a few additional ones", () => {
    const names = Object.values(APISERVER_FLAGS).flatMap((group) => Object.keys(group))
    assert.deepEqual(names.filter((name) => !OWN.includes(name)).sort(), rows.map(({ name }) => name).sort())
    assert.ok(rows.length > 160)
  })

  it("are in upstream's groups and order", () => {
    const groups = Object.keys(APISERVER_FLAGS).filter((group) => group !== 'cloud provider')
    assert.deepEqual(groups, [...new Set(rows.map(({ group }) => group))])
    for (const { group, name } of rows)
      assert.ok(Object.hasOwn(APISERVER_FLAGS[group] ?? {}, name), `${group}: ${name}`)
  })

  it("have upstream's types and defaults", () => {
    const different = rows.flatMap(({ group, name, hint: type, initial }) => {
      const each = APISERVER_FLAGS[group]?.[name] as Flag<unknown>
      const ours = `${each.kind.type.replaceAll(' ', '')} ${each.kind.print(each.initial)}`
      return ours === `${type} ${initial}` ? [] : [`${name}: ${ours}, not ${type} ${initial}`]
    })
    assert.deepEqual(different, [])
  })

  it('state in their usage if they have no effect', () => {
    const all = Object.values(APISERVER_FLAGS).flatMap((group) =>
      Object.values(group as Record<string, ServerFlag<unknown>>),
    )
    for (const { unsupported, idle, usage } of all) {
      assert.ok(usage.length > 10)
      assert.ok(unsupported === undefined || idle === undefined)
    }
  })
})

describe('findUnsupported() for flags', () => {
  it('rejects unsupported flags by name, with the given value', () => {
    assert.deepEqual(support(['--egress-selector-config-file=e.yaml', '--goaway-chance=0.02']).errors, [
      '--goaway-chance=0.02 is not supported: the server does not close HTTP/2 connections at random',
      '--egress-selector-config-file=e.yaml is not supported: the server opens all connections directly',
    ])
  })

  it('accepts the default of an unsupported flag', () => {
    const args = ['--watch-cache=true', '--endpoint-reconciler-type=lease', '--audit-policy-file=', '--insecure-port=0']
    assert.deepEqual(support(args), { errors: [], notes: [] })
  })

  it('prints a note for a flag without effect', () => {
    assert.deepEqual(support(['--watch-cache-sizes=pods#100']), {
      errors: [],
      notes: ['--watch-cache-sizes has no effect: watch caches adjust their size'],
    })
  })

  it('reports nothing without flags', () => {
    assert.deepEqual(support([]), { errors: [], notes: [] })
  })
})
