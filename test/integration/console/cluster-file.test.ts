/** Tests cluster files of the form, and changes of parts of a file. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  fileOf,
  gapsIn,
  type MachineDraft,
  namesIn,
  NEW_MACHINE,
  scheduleIn,
  withMachine,
  withSchedule,
} from '#console/builds/cluster-file.ts'
import { readClusterFile } from '#provision/file/cluster-file.ts'

const ONE: MachineDraft = { ...NEW_MACHINE, address: '10.0.0.1' }
const TWO: MachineDraft = { ...NEW_MACHINE, way: 'agent', address: '10.0.0.2', name: 'w-1', roles: ['worker'] }

describe('cluster file of the form', () => {
  it('is one that the server accepts', () => {
    const text = fileOf({ machines: [{ ...ONE, port: '2222', user: 'ops' }, TWO], network: 'flannel' })
    const { cluster, faults } = readClusterFile(text)
    assert.deepEqual(faults, [])
    assert.deepEqual(
      cluster?.nodes.map(({ hostname_override: name, user, port, role }) => [name, user, port, role]),
      [
        ['10.0.0.1', 'ops', 2222, ['etcd', 'controlplane', 'worker']],
        ['w-1', 'root', 22, ['worker']],
      ],
    )
  })

  const gaps: readonly (readonly [machines: readonly MachineDraft[], found: RegExp])[] = [
    [[], /Add a machine/],
    [[NEW_MACHINE], /Machine 1: give its address/],
    [[{ ...ONE, port: 'x' }], /"x" is no port/],
    [[{ ...ONE, roles: [] }], /choose a role/],
    [[{ ...ONE, way: 'agent' }], /give its name/],
    [[ONE, { ...TWO, address: '10.0.0.1' }], /Two machines have the address 10\.0\.0\.1/],
    [[TWO], /One machine must be a control plane/],
  ]
  for (const [machines, found] of gaps) {
    it(`is not complete: ${found.source}`, () => assert.match(gapsIn({ machines, network: '' }).join('\n'), found))
  }

  it('is complete with one machine that has all roles', () =>
    assert.deepEqual(gapsIn({ machines: [ONE], network: '' }), []))
})

const FILE = '# mine\nnodes:\n  - address: 10.0.0.1 # first\n    user: root\n    role: [etcd, controlplane, worker]\n'

describe('changes of a cluster file', () => {
  it('add a machine and keep comments', () => {
    const text = withMachine(FILE, TWO)
    assert.ok(text.startsWith('# mine\nnodes:\n  - address: 10.0.0.1 # first\n'))
    assert.deepEqual(namesIn(text), ['10.0.0.1', 'w-1'])
    assert.deepEqual(readClusterFile(text).faults, [])
    assert.deepEqual(namesIn(withMachine('', TWO)), ['w-1'])
  })

  it('set the schedule of snapshots and keep comments', () => {
    assert.deepEqual(scheduleIn(FILE), { isOn: true, hours: 12, retention: 6 })
    const schedule = { isOn: false, hours: 4, retention: 9 }
    const text = withSchedule(FILE, schedule)
    assert.ok(text.includes('# first'))
    assert.deepEqual(scheduleIn(text), schedule)
    assert.deepEqual(readClusterFile(text).cluster?.services.etcd.backup_config.interval_hours, 4)
  })

  it('read nothing from a text that is no YAML', () => {
    assert.equal(scheduleIn('a: ['), undefined)
    assert.deepEqual(namesIn('a: ['), [])
    assert.deepEqual(namesIn('nodes: 5'), [])
  })
})
