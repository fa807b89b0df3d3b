import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { findUnsupported, type ServerFlag } from '#lib/flags/flag-support.ts'
import { defineFlags, type Flag, parseFlags } from '#lib/flags/flags.ts'

import { APISERVER_FLAGS } from './flags.ts'
import { UPSTREAM_FLAGS } from './upstream-flags.fixture.ts'

/** What upstream does not have: our stores, and flags of old releases that tools still pass. */
const OWN = [
  'datastore',
  'encryption-key-file',
  'cloud-config',
  'cloud-provider',
  'insecure-port',
  'log-json-info-buffer-size',
  'log-json-split-stream',
]

interface Row {
  readonly group: string
  readonly name: string
  readonly type: string
  readonly initial: string
}

function upstreamRows(): Row[] {
  let group = ''
  return UPSTREAM_FLAGS.split('\n').flatMap((line): Row[] => {
    if (line.startsWith('# ')) group = line.slice(2)
    const [name = '', type = '', initial = ''] = line.split(' ')
    return line === '' || line.startsWith('# ') ? [] : [{ group, name, type, initial: initial === "''" ? '' : initial }]
  })
}

function support(args: readonly string[]): ReturnType<typeof findUnsupported> {
  const { values, changed } = parseFlags(defineFlags(APISERVER_FLAGS), args)
  return findUnsupported(APISERVER_FLAGS, values, changed)
}

describe('the flags of kube-apiserver', () => {
  const rows = upstreamRows()

  it("are all of upstream's, and a few of ours", () => {
    const names = Object.values(APISERVER_FLAGS).flatMap((group) => Object.keys(group))
    assert.deepEqual(names.filter((name) => !OWN.includes(name)).sort(), rows.map(({ name }) => name).sort())
    assert.ok(rows.length > 160)
  })

  it("are in upstream's groups, in their order", () => {
    const groups = Object.keys(APISERVER_FLAGS).filter((group) => group !== 'cloud provider')
    assert.deepEqual(groups, [...new Set(rows.map(({ group }) => group))])
    for (const { group, name } of rows)
      assert.ok(Object.hasOwn(APISERVER_FLAGS[group] ?? {}, name), `${group}: ${name}`)
  })

  it("have upstream's types and defaults", () => {
    const different = rows.flatMap(({ group, name, type, initial }) => {
      const each = APISERVER_FLAGS[group]?.[name] as Flag<unknown>
      const ours = `${each.kind.type.replaceAll(' ', '')} ${each.kind.print(each.initial)}`
      return ours === `${type} ${initial}` ? [] : [`${name}: ${ours}, not ${type} ${initial}`]
    })
    assert.deepEqual(different, [])
  })

  it('say what becomes of them, when that is nothing', () => {
    const all = Object.values(APISERVER_FLAGS).flatMap((group) =>
      Object.values(group as Record<string, ServerFlag<unknown>>),
    )
    for (const { unsupported, idle, usage } of all) {
      assert.ok(usage.length > 10)
      assert.ok(unsupported === undefined || idle === undefined)
    }
  })
})

describe('findUnsupported', () => {
  it('refuses by name what is not honoured, with the value that was given', () => {
    assert.deepEqual(support(['--egress-selector-config-file=e.yaml', '--goaway-chance=0.02']).errors, [
      '--goaway-chance=0.02 is not supported: clients are not sent away by chance',
      '--egress-selector-config-file=e.yaml is not supported: connections are made directly',
    ])
  })

  it('accepts the default of what is not honoured', () => {
    const args = ['--watch-cache=true', '--endpoint-reconciler-type=lease', '--audit-policy-file=', '--insecure-port=0']
    assert.deepEqual(support(args), { errors: [], notes: [] })
  })

  it('tells of flags that change nothing', () => {
    assert.deepEqual(support(['--watch-cache-sizes=pods#100']), {
      errors: [],
      notes: ['--watch-cache-sizes has no effect: watch caches size themselves'],
    })
  })

  it('says nothing when nothing is given', () => {
    assert.deepEqual(support([]), { errors: [], notes: [] })
  })
})
