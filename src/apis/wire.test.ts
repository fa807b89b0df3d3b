/**
 * Tests the generated protobuf messages: encodes and decodes a sample of each service, and checks the numbers of enums.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Rpc } from '#lib/grpc/method.ts'

import * as cri from './wire/cri.ts'
import { DevicePlugin, Registration as DeviceRegistration } from './wire/device-plugin.ts'
import { DRAPlugin } from './wire/dra.ts'
import * as etcd from './wire/etcd.ts'
import { KeyManagementService } from './wire/kms.ts'
import { Registration } from './wire/plugin-registration.ts'
import { PodResourcesLister } from './wire/pod-resources.ts'

interface Sample {
  readonly method: Rpc<object, object>
  readonly path: string
  readonly request: object
  /** The encoded request, as hexadecimal digits. */
  readonly requestBytes: string
  readonly response: object
  readonly responseBytes: string
}

const sample = <Q extends object, R extends object>(method: Rpc<Q, R>, rest: Omit<Sample, 'method'>): Sample => ({
  ...rest,
  method,
})

const SAMPLES: readonly Sample[] = [
  sample(cri.RuntimeService.createContainer, {
    path: '/runtime.v1.RuntimeService/CreateContainer',
    request: {
      podSandboxId: 's',
      config: {
        metadata: { name: 'c', attempt: 2 },
        envs: [{ key: 'A', value: Buffer.from('b') }],
        labels: new Map([['k', 'v']]),
        linux: { securityContext: { supplementalGroups: [1, 300], runAsUser: { value: 0 } } },
        cdiDevices: [{ name: 'd' }],
        stopSignal: cri.Signal.SIGTERM,
      },
    },
    requestBytes: '0a0173122b0a050a0163100232060a01411201624a060a016b1201767a0912072a00420301ac028a01030a0164900117',
    response: { containerId: 'id' },
    responseBytes: '0a026964',
  }),
  sample(cri.ImageService.imageFsInfo, {
    path: '/runtime.v1.ImageService/ImageFsInfo',
    request: {},
    requestBytes: '',
    response: { imageFilesystems: [{ timestamp: 1n << 60n, fsId: { mountpoint: '/' }, usedBytes: { value: 5 } }] },
    responseBytes: '0a130880808080808080801012030a012f1a020805',
  }),
  sample(etcd.KV.txn, {
    path: '/etcdserverpb.KV/Txn',
    request: {
      compare: [{ target: etcd.CompareTarget.CREATE, key: '/a', createRevision: 0 }],
      success: [{ requestPut: { key: '/a', value: Buffer.from('v'), lease: 9, prevKv: true } }],
      failure: [{ requestTxn: { success: [{ requestRange: { key: '/a' } }] } }],
    },
    requestBytes: '0a0810011a022f612800120d120b0a022f61120176180920011a0a220812060a040a022f61',
    response: {
      header: { revision: 7 },
      responses: [{ responseRange: { kvs: [{ key: '/a', modRevision: 3, value: Buffer.from('w') }], count: 1 } }],
    },
    responseBytes: '0a0218071a0f0a0d12090a022f6118032a01772001',
  }),
  sample(etcd.Watch.watch, {
    path: '/etcdserverpb.Watch/Watch',
    request: { createRequest: { key: '/', rangeEnd: '0', startRevision: 5, prevKv: true, fragment: true } },
    requestBytes: '0a0c0a012f120130180530014001',
    response: { events: [{ type: etcd.EventType.DELETE, kv: { key: '/a', modRevision: 6 } }] },
    responseBytes: '5a0a080112060a022f611806',
  }),
  sample(etcd.Lease.leaseTimeToLive, {
    path: '/etcdserverpb.Lease/LeaseTimeToLive',
    request: { id: 4 },
    requestBytes: '0804',
    response: { id: 4, ttl: -1, grantedTtl: 60 },
    responseBytes: '100418ffffffffffffffffff01203c',
  }),
  sample(etcd.Maintenance.snapshot, {
    path: '/etcdserverpb.Maintenance/Snapshot',
    request: {},
    requestBytes: '',
    response: { remainingBytes: 3, blob: Buffer.from('b') },
    responseBytes: '10031a0162',
  }),
  sample(etcd.Auth.authenticate, {
    path: '/etcdserverpb.Auth/Authenticate',
    request: { name: 'n', password: 'p' },
    requestBytes: '0a016e120170',
    response: { token: 't' },
    responseBytes: '120174',
  }),
  sample(KeyManagementService.decrypt, {
    path: '/v2.KeyManagementService/Decrypt',
    request: { ciphertext: Buffer.from('c'), uid: 'u', keyId: 'k', annotations: new Map([['a', Buffer.from('b')]]) },
    requestBytes: '0a01631201751a016b22060a0161120162',
    response: { plaintext: Buffer.from('p') },
    responseBytes: '0a0170',
  }),
  sample(DeviceRegistration.register, {
    path: '/v1beta1.Registration/Register',
    request: { version: 'v', endpoint: 'e', resourceName: 'r', options: { getPreferredAllocationAvailable: true } },
    requestBytes: '0a01761201651a017222021001',
    response: {},
    responseBytes: '',
  }),
  sample(DevicePlugin.getPreferredAllocation, {
    path: '/v1beta1.DevicePlugin/GetPreferredAllocation',
    request: {
      containerRequests: [{ availableDeviceIds: ['a', 'b'], mustIncludeDeviceIds: ['b'], allocationSize: 1 }],
    },
    requestBytes: '0a0b0a01610a01621201621801',
    response: { containerResponses: [{ deviceIds: ['b'] }] },
    responseBytes: '0a030a0162',
  }),
  sample(DevicePlugin.allocate, {
    path: '/v1beta1.DevicePlugin/Allocate',
    request: { containerRequests: [{ devicesIds: ['a'] }] },
    requestBytes: '0a030a0161',
    response: {
      containerResponses: [{ mounts: [{ hostPath: 'h', readOnly: true }], cdiDevices: [{ name: 'n' }] }],
    },
    responseBytes: '0a0c120512016818012a030a016e',
  }),
  sample(DRAPlugin.nodePrepareResources, {
    path: '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources',
    request: { claims: [{ namespace: 'n', uid: 'u', name: 'c' }] },
    requestBytes: '0a090a016e1201751a0163',
    response: { claims: new Map([['u', { devices: [{ poolName: 'p', shareId: '' }], error: '' }]]) },
    responseBytes: '0a0c0a017512070a051201702a00',
  }),
  sample(Registration.notifyRegistrationStatus, {
    path: '/pluginregistration.Registration/NotifyRegistrationStatus',
    request: { pluginRegistered: true, error: 'e' },
    requestBytes: '0801120165',
    response: {},
    responseBytes: '',
  }),
  sample(PodResourcesLister.get, {
    path: '/v1.PodResourcesLister/Get',
    request: { podName: 'p', podNamespace: 'n' },
    requestBytes: '0a017012016e',
    response: {
      podResources: {
        containers: [
          {
            cpuIds: [0, 200],
            memory: [{ memoryType: 'm', size: 2 ** 40, topology: { nodes: [{ id: 1 }] } }],
            dynamicResources: [{ claimName: 'c', claimResources: [{ driverName: 'd' }] }],
          },
        ],
      },
    },
    responseBytes: '0a231a211a0300c80122100a016d108080808080201a040a0208012a081201632203120164',
  }),
]

describe('generated protobuf messages', () => {
  for (const { method, path, request, requestBytes, response, responseBytes } of SAMPLES) {
    it(`round-trip a request of ${path}`, () => {
      assert.equal(method.path, path)
      checkRoundTrip(method.request, request, requestBytes)
      checkRoundTrip(method.response, response, responseBytes)
    })
  }

  it('have enums without gaps and duplicates', () => {
    const enums = Object.entries({ ...cri, ...etcd }).filter(([, value]) =>
      Object.values(value).every(Number.isInteger),
    )
    assert.ok(enums.length > 0)
    for (const [name, values] of enums) {
      const numbers: unknown[] = Object.values(values)
      assert.deepEqual(numbers, Array.from(numbers.keys()), name)
    }
  })
})

function checkRoundTrip(codec: Rpc<object, object>['request'], value: object, bytes: string): void {
  const encoded = codec.encode(value)
  assert.equal(encoded.toString('hex'), bytes)
  const decoded = codec.decode(encoded)
  assert.partialDeepStrictEqual(decoded, value)
  assert.deepEqual(codec.encode(decoded), encoded)
}
