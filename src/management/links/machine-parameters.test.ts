import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { isOfMachine, readMachineParameters } from './machine-parameters.ts'

const CONFIG = { address: '203.0.113.7', internalAddress: '10.0.0.7', label: { zone: 'a' }, taints: ['a=b:NoSchedule'] }
const NODE = { etcd: false, controlPlane: true, worker: true, requestedHostname: 'node-1', customConfig: CONFIG }
const MACHINE = { os: 'linux', architecture: 'x64', hostname: 'node-1', agentVersion: '0.1.0' }

const read = (node: object, machine: object = MACHINE): ReturnType<typeof readMachineParameters> =>
  readMachineParameters({ node: { ...NODE, ...node }, machine })
const withConfig = (config: object): object => ({ customConfig: { ...CONFIG, ...config } })
const many = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`l${at}`, '']))

describe('readMachineParameters()', () => {
  it('parses the parameters of an agent into spec and status of the Machine', () => {
    assert.deepEqual(read({}), {
      spec: {
        nodeName: 'node-1',
        roles: ['controlplane', 'worker'],
        address: '203.0.113.7',
        internalAddress: '10.0.0.7',
        labels: { zone: 'a' },
        taints: ['a=b:NoSchedule'],
      },
      status: MACHINE,
    })
  })

  const ALLOWED: Readonly<Record<string, object>> = {
    'no addresses': withConfig({ address: '', internalAddress: '' }),
    'an IPv6 address': withConfig({ internalAddress: 'fd00::1' }),
    'a DNS name as the address': withConfig({ address: 'node.example.com' }),
    'labels with prefixes': withConfig({ label: { 'example.com/zone': '' } }),
    'a taint without a value': withConfig({ taints: ['dedicated:NoExecute'] }),
  }
  for (const [what, node] of Object.entries(ALLOWED)) it(`accepts a machine with ${what}`, () => void read(node))

  const REFUSED: Readonly<Record<string, readonly [node: object, message: RegExp]>> = {
    'no role': [{ controlPlane: false, worker: false }, /requests no role/],
    'strings instead of booleans as roles': [{ controlPlane: 'true', worker: 'true' }, /requests no role/],
    'no host name': [{ requestedHostname: undefined }, /requestedHostname/],
    'a name in upper case': [{ requestedHostname: 'Node-1' }, /DNS name/],
    'a name with a path': [{ requestedHostname: '../x' }, /DNS name/],
    'a name of 300 characters': [{ requestedHostname: 'a'.repeat(300) }, /short text/],
    'an address with a space': [withConfig({ address: '10.0.0.1 x' }), /"address"/],
    'a shell command in its address': [withConfig({ internalAddress: '$(x)' }), /"internalAddress"/],
    'an array of labels': [withConfig({ label: [] }), /no object "label"/],
    '101 labels': [withConfig({ label: many }), /more than 100 labels/],
    'a label with an invalid key': [withConfig({ label: { 'a b': '' } }), /is not a label/],
    'a number as the value of a label': [withConfig({ label: { a: 1 } }), /is not a label/],
    'an object instead of an array of taints': [withConfig({ taints: {} }), /no list/],
    'a taint with an unknown effect': [withConfig({ taints: ['a=b:Never'] }), /key=value:effect/],
    'a taint that is a number': [withConfig({ taints: [1] }), /key=value:effect/],
  }
  for (const [what, [node, message]] of Object.entries(REFUSED))
    it(`refuses a machine with ${what}`, () => assert.throws(() => read(node), { name: 'StatusError', message }))

  it('refuses an operating system with control characters, or none', () => {
    assert.throws(() => read({}, { ...MACHINE, os: 'li\nnux' }), /machine.os/)
    assert.throws(() => read({}, {}), /machine.os/)
  })
})

describe('isOfMachine()', () => {
  it('distinguishes parameters of machines from those of cluster agents', () => {
    assert.deepEqual([isOfMachine({ node: {} }), isOfMachine({ uid: 'x' })], [true, false])
  })
})
