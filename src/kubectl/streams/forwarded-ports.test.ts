import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod, Service } from '#apis/core/v1.ts'

import { parseAddresses, parsePorts, portsBehind, portsInPod } from './forwarded-ports.ts'

const POD = {
  metadata: { name: 'p' },
  spec: {
    containers: [
      {
        name: 'c',
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'dns', containerPort: 53, protocol: 'UDP' },
        ],
      },
    ],
  },
} as unknown as Pod

const SERVICE = {
  metadata: { name: 's' },
  spec: {
    ports: [
      { name: 'www', port: 80, targetPort: 'http' },
      { name: 'same', port: 9090 },
      { name: 'gone', port: 81, targetPort: 'nope' },
    ],
  },
} as unknown as Service

describe('ports of kubectl port-forward', () => {
  it('are two numbers, one number, or a remote port after ":"', () => {
    assert.deepEqual(parsePorts(['80', '8080:80', ':80']), [
      { local: 80, remote: 80 },
      { local: 8080, remote: 80 },
      { local: 0, remote: 80 },
    ])
    assert.throws(() => parsePorts(['1:2:3']), /invalid port format '1:2:3'/)
    assert.throws(
      () => parsePorts(['x:1']),
      /error parsing local port 'x': strconv.ParseUint: parsing "x": invalid syntax/,
    )
    assert.throws(() => parsePorts(['70000']), /value out of range/)
    assert.throws(() => parsePorts(['1:0']), /remote port must be > 0/)
  })

  it('may be named ports of a pod', () => {
    assert.deepEqual(portsInPod(['http', '1:http', ':http', '70'], POD), ['8080', '1:8080', ':8080', '70'])
    assert.throws(() => portsInPod(['x'], POD), /Pod 'p' does not have a named port 'x'/)
    assert.throws(() => portsInPod(['dns'], POD), /UDP protocol is not supported for dns/)
  })

  it('are translated from a Service to its pod', () => {
    assert.deepEqual(portsBehind(['80', '8080:www', 'same'], SERVICE, POD), ['80:8080', '8080', '9090'])
    assert.throws(() => portsBehind(['82'], SERVICE, POD), /Service s does not have a service port 82/)
    assert.throws(() => portsBehind(['gone'], SERVICE, POD), /Pod 'p' does not have a named port 'nope'/)
  })
})

describe('addresses of kubectl port-forward', () => {
  it('are 127.0.0.1 and ::1 for localhost, of which one must be available', () => {
    assert.deepEqual(
      parseAddresses(['localhost', '10.0.0.1']).map(({ address }) => address),
      ['10.0.0.1', '127.0.0.1', '::1'],
    )
    assert.throws(() => parseAddresses(['example.com']), /example.com is not a valid IP/)
  })
})
