/** Tests the states of machines, and the request for the command that connects one. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Machine, registrationIn, sortMachines, stateOfMachine } from './machines.ts'

const machine = (nodeName: string, status: Machine['status'] = {}): Machine => ({
  metadata: { name: nodeName },
  spec: { cluster: 'c-1', nodeName, roles: ['worker'] },
  status,
})
const connected = [{ type: 'Connected', status: 'True' }]

describe('state of a machine', () => {
  it('is connected, disconnected or only registered', () => {
    const states = [
      machine('a', { conditions: connected, connectedAt: '1' }),
      machine('b', { connectedAt: '1', disconnectedAt: '2' }),
      machine('c'),
    ].map(stateOfMachine)
    assert.deepEqual(
      states.map(({ text, since }) => [text, since]),
      [
        ['Connected', '1'],
        ['Disconnected', '2'],
        ['Registered', undefined],
      ],
    )
  })

  it('puts machines without a connection first', () => {
    const all = [machine('n10', { conditions: connected }), machine('n9', { conditions: connected }), machine('z')]
    assert.deepEqual(
      sortMachines(all).map(({ spec }) => spec.nodeName),
      ['z', 'n9', 'n10'],
    )
  })
})

describe('registrationIn()', () => {
  const fields = { 'role-worker': 'on', uses: '1', validHours: '24' }

  it('reads roles, labels and taints', () => {
    const given = { ...fields, 'role-etcd': 'on', node: ' n-1 ', labels: 'a=b\nc=d=e\n', taints: 'x=y:NoSchedule' }
    assert.deepEqual(registrationIn(given), {
      roles: ['etcd', 'worker'],
      uses: 1,
      validHours: 24,
      nodeName: 'n-1',
      labels: { a: 'b', c: 'd=e' },
      taints: ['x=y:NoSchedule'],
    })
  })

  const wrong: readonly (readonly [fields: Readonly<Record<string, string>>, words: RegExp])[] = [
    [{ uses: '1', validHours: '24' }, /at least one role/],
    [{ ...fields, uses: 'many' }, /number of machines/],
    [{ ...fields, validHours: '' }, /hours/],
    [{ ...fields, uses: '2', node: 'n' }, /one machine only/],
    [{ ...fields, labels: 'zone' }, /"zone" must be key=value/],
  ]
  for (const [given, words] of wrong) {
    it(`refuses: ${words.source}`, () => {
      const found = registrationIn(given)
      assert.match(typeof found === 'string' ? found : '', words)
    })
  }
})
