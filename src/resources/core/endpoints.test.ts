import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { endpoints } from './endpoints.ts'
import { trialOf } from './trial.suite.ts'

const trial = trialOf(endpoints)
const metadata = { name: 'e', namespace: 'ns' }
const sent = (subset: Record<string, unknown>): Record<string, unknown> => ({ metadata, subsets: [subset] })

describe('Endpoints', () => {
  it('have protocol TCP by default', () => {
    const { object, errors } = trial.create(sent({ addresses: [{ ip: '10.1.1.1' }], ports: [{ port: 80 }] }))
    assert.deepEqual(errors, [])
    assert.equal(object.subsets?.[0]?.ports?.[0]?.protocol, 'TCP')
  })

  const refusals: [string, Record<string, unknown>, string[]][] = [
    ['a subset without addresses', {}, ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`']],
    [
      'a text that is not an IP',
      { notReadyAddresses: [{ ip: 'x' }] },
      [
        'subsets[0].notReadyAddresses[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'subsets[0].notReadyAddresses[0].ip: Invalid value: "x": must be a valid IP address',
      ],
    ],
    [
      'a loopback address',
      { addresses: [{ ip: '127.0.0.1' }] },
      [
        'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
      ],
    ],
    [
      'a link-local multicast address',
      { addresses: [{ ip: 'ff12::1' }] },
      [
        'subsets[0].addresses[0].ip: Invalid value: "ff12::1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
      ],
    ],
    [
      'an IP with leading zeros',
      { addresses: [{ ip: '010.0.0.1' }] },
      ['subsets[0].addresses[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'],
    ],
    [
      'several ports without names',
      { addresses: [{ ip: '::2' }], ports: [{ port: 0 }, { name: 'b', port: 1, protocol: 'x' }] },
      [
        'subsets[0].ports[0].name: Required value',
        'subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'subsets[0].ports[1].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"',
      ],
    ],
  ]
  for (const [what, subset, errors] of refusals) {
    it(`reject ${what}`, () => assert.deepEqual(trial.create(sent(subset)).errors, errors))
  }

  it('keep invalid values that the old object has, but reject new invalid values', () => {
    const old = sent({ addresses: [{ ip: '010.0.0.1' }] })
    assert.deepEqual(trial.update(old, old).errors, [])
    assert.equal(trial.update(sent({ addresses: [{ ip: '010.0.0.2' }] }), old).errors.length, 1)
  })

  it('cause a warning for non-canonical addresses, unless a controller wrote them', () => {
    const subsets = [{ addresses: [{ ip: 'FD00::1' }] }]
    assert.deepEqual(trial.create({ metadata, subsets }).warnings, [
      'subsets[0].addresses[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
    ])
    const labels = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' }
    assert.deepEqual(trial.create({ metadata: { ...metadata, labels }, subsets }).warnings, [])
  })

  it('print up to three addresses', () => {
    const shown = (...subsets: unknown[]): unknown => trial.cells({ metadata, subsets })[1]
    assert.equal(shown(), '<none>')
    assert.equal(shown({ addresses: [{ ip: '1.1.1.1' }] }), '1.1.1.1')
    const many = [1, 2, 3, 4].map((n) => ({ ip: `1.1.1.${n}` }))
    assert.equal(shown({ addresses: many, ports: [{ port: 80 }] }), '1.1.1.1:80,1.1.1.2:80,1.1.1.3:80 + 1 more...')
    assert.equal(shown({ addresses: [{ ip: 'fd00::1' }], ports: [{ port: 80 }] }), '[fd00::1]:80')
  })
})
