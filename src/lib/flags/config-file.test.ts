import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { applyConfig, unknownFields } from './config-file.ts'
import { featureGates } from './feature-gates.ts'
import { defineFlags, flag, parseFlags } from './flags.ts'
import { bool, duration, int } from './kinds.ts'
import { ip, stringMap, strings } from './list-kinds.ts'

const set = defineFlags({
  generic: {
    port: flag(int, 1, '', { field: 'port' }),
    address: flag(ip, '', '', { field: 'serving.address' }),
    cache: flag(duration, 0, '', { field: 'authentication.webhook.cacheTTL' }),
    webhook: flag(bool, false, '', { field: 'authentication.webhook.enabled' }),
    dns: flag(strings, [], '', { field: 'clusterDNS' }),
    labels: flag(stringMap, new Map(), '', { field: 'labels' }),
    gates: flag(featureGates({ A: { default: false, maturity: 'GA' } }), new Map(), '', { field: 'featureGates' }),
    plain: flag(int, 3, ''),
  },
})

function merge(document: unknown, ...args: string[]) {
  return applyConfig(set, parseFlags(set, args), document, 'c.yaml')
}

describe('applyConfig() to flags', () => {
  it('sets flags that were not given from fields of the file', () => {
    const { values, changed } = merge(
      {
        port: 80,
        serving: { address: 'FD00::1' },
        authentication: { webhook: { cacheTTL: '2m', enabled: true } },
        clusterDNS: ['10.0.0.10', 'a,b'],
        labels: { a: '1', b: 2 },
        featureGates: { A: true },
      },
      '--cache=1s',
    )
    assert.deepEqual(
      [values.port, values.address, values.cache, values.webhook, values.dns, values.plain],
      [80, 'fd00::1', 1000, true, ['10.0.0.10', 'a,b'], 3],
    )
    assert.deepEqual(
      [[...values.labels], [...values.gates]],
      [
        [
          ['a', '1'],
          ['b', '2'],
        ],
        [['A', true]],
      ],
    )
    assert.deepEqual([...changed], ['cache'])
  })

  it('keeps a given flag, even if it has its default value', () => {
    assert.equal(merge({ port: 80 }, '--port=1').values.port, 1)
  })

  it('treats null as absent and returns warnings', () => {
    const { values, warnings } = merge({ port: null, featureGates: { A: true } })
    assert.equal(values.port, 1)
    assert.deepEqual(warnings, ['Setting GA feature gate A=true. It will be removed in a future release.'])
  })

  for (const [document, message] of [
    [{ port: 'x' }, 'Invalid field "port" in config file "c.yaml": strconv.ParseInt: parsing "x": invalid syntax'],
    [{ port: {} }, 'Invalid field "port" in config file "c.yaml": must be a int'],
    [{ clusterDNS: 5 }, 'Invalid field "clusterDNS" in config file "c.yaml": must be a list'],
    [{ labels: [] }, 'Invalid field "labels" in config file "c.yaml": must be an object'],
    [[], 'Config file "c.yaml" must hold one object'],
    ['x', 'Config file "c.yaml" must hold one object'],
  ] as const) {
    it(`rejects ${JSON.stringify(document)}`, () => assert.throws(() => merge(document), { message }))
  }

  it('ignores properties that objects inherit, such as "constructor"', () => {
    const odd = defineFlags({ g: { x: flag(strings, [], '', { field: 'constructor.name' }) } })
    assert.deepEqual(applyConfig(odd, parseFlags(odd, []), {}, 'c').values.x, [])
  })
})

describe('unknownFields() of a configuration file', () => {
  it('returns the fields without a flag', () => {
    const document = JSON.parse(
      '{"apiVersion":"v1","kind":"K","port":1,"pot":2,"authentication":{"webhook":{"enabled":true,"x":1},"y":{}},"labels":{"a":"1"},"__proto__":{"z":1}}',
    ) as unknown
    assert.deepEqual(unknownFields(set, document), ['pot', 'authentication.webhook.x', 'authentication.y', '__proto__'])
  })
})
