/**
 * Runs the automated checks of the CIS Kubernetes Benchmark 1.12 as kube-bench does, against the flags and files of a
 * built cluster. Checks that fail by default have an explanation, and pass with the settings it names.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { ClusterFile, ClusterNode } from './cluster.ts'
import { configFiles } from './components/component-files.ts'
import { componentFlags, type ComponentName, type Flags } from './components/component-flags.ts'
import { MINIMAL } from './file/cluster-file.fixture.ts'
import { readClusterFile } from './file/cluster-file.ts'
import { completeBundle } from './pki/bundle.ts'
import { certificateFiles, type PkiFile } from './pki/files.ts'

interface Built {
  readonly api: Flags
  readonly manager: Flags
  readonly scheduler: Flags
  readonly etcd: Flags
  readonly kubelet: Flags
  readonly proxy: Flags
  readonly files: readonly PkiFile[]
}

function build(more: string): Built {
  const cluster = readClusterFile(`${MINIMAL}${more}`).cluster as ClusterFile
  const node = cluster.nodes[0] as ClusterNode
  const { bundle } = completeBundle(cluster, {}, { clock: createVirtualClock(), random: createSeededRandom(1) })
  const flagsOf = (name: ComponentName): Flags => componentFlags(name, cluster, node)
  return {
    api: flagsOf('kube-apiserver'),
    manager: flagsOf('kube-controller-manager'),
    scheduler: flagsOf('kube-scheduler'),
    etcd: flagsOf('etcd'),
    kubelet: flagsOf('kubelet'),
    proxy: flagsOf('kube-proxy'),
    files: [...certificateFiles(cluster, node, bundle), ...configFiles(cluster, node, '')],
  }
}

type Check = readonly [id: string, what: string, passes: (built: Built) => boolean, explained?: string]

const has = (flags: Flags, name: string, part: string): boolean =>
  String(flags[name] ?? '')
    .split(',')
    .includes(part)
const isPrivate = (built: Built, pattern: RegExp): boolean => {
  const found = built.files.filter(({ path }) => pattern.test(path))
  return found.length > 0 && found.every(({ mode }) => (mode & 0o177) === 0)
}

const CHECKS: readonly Check[] = [
  ['1.1.15', 'the scheduler kubeconfig has mode 600', (b) => isPrivate(b, /kubecfg-kube-scheduler\.yaml$/)],
  [
    '1.1.17',
    'the controller manager kubeconfig has mode 600',
    (b) => isPrivate(b, /kubecfg-kube-controller-manager\.yaml$/),
  ],
  ['1.1.20', 'certificates have mode 644 or stricter', (b) => isPrivate(b, /\.pem$/)],
  ['1.1.21', 'keys have mode 600', (b) => isPrivate(b, /-key\.pem$/)],
  ['1.2.1', 'kube-apiserver disables anonymous-auth', ({ api }) => api['anonymous-auth'] === 'false'],
  ['1.2.2', 'kube-apiserver has no token-auth-file', ({ api }) => api['token-auth-file'] === undefined],
  [
    '1.2.4',
    'kube-apiserver has a kubelet client certificate',
    ({ api }) => 'kubelet-client-certificate' in api && 'kubelet-client-key' in api,
  ],
  [
    '1.2.5',
    'kube-apiserver sets kubelet-certificate-authority',
    ({ api }) => 'kubelet-certificate-authority' in api,
    'Kubelets serve with certificates of their own unless services.kubelet.generate_serving_certificate is true, as with RKE',
  ],
  [
    '1.2.6',
    'kube-apiserver does not use authorization mode AlwaysAllow',
    ({ api }) => !has(api, 'authorization-mode', 'AlwaysAllow'),
  ],
  ['1.2.7', 'kube-apiserver uses authorization mode Node', ({ api }) => has(api, 'authorization-mode', 'Node')],
  ['1.2.8', 'kube-apiserver uses authorization mode RBAC', ({ api }) => has(api, 'authorization-mode', 'RBAC')],
  [
    '1.2.10',
    'kube-apiserver does not enable the plugin AlwaysAdmit',
    ({ api }) => !has(api, 'enable-admission-plugins', 'AlwaysAdmit'),
  ],
  [
    '1.2.12',
    'kube-apiserver does not disable the plugin ServiceAccount',
    ({ api }) => !has(api, 'disable-admission-plugins', 'ServiceAccount'),
  ],
  [
    '1.2.13',
    'kube-apiserver does not disable the plugin NamespaceLifecycle',
    ({ api }) => !has(api, 'disable-admission-plugins', 'NamespaceLifecycle'),
  ],
  [
    '1.2.14',
    'kube-apiserver enables the plugin NodeRestriction',
    ({ api }) => has(api, 'enable-admission-plugins', 'NodeRestriction'),
  ],
  ['1.2.15', 'kube-apiserver disables profiling', ({ api }) => api['profiling'] === 'false'],
  ['1.2.16', 'kube-apiserver sets audit-log-path', ({ api }) => 'audit-log-path' in api],
  ['1.2.17', 'kube-apiserver sets audit-log-maxage to 30 or more', ({ api }) => Number(api['audit-log-maxage']) >= 30],
  [
    '1.2.18',
    'kube-apiserver sets audit-log-maxbackup to 10 or more',
    ({ api }) => Number(api['audit-log-maxbackup']) >= 10,
  ],
  [
    '1.2.19',
    'kube-apiserver sets audit-log-maxsize to 100 or more',
    ({ api }) => Number(api['audit-log-maxsize']) >= 100,
  ],
  ['1.2.21', 'kube-apiserver enables service-account-lookup', ({ api }) => api['service-account-lookup'] === 'true'],
  ['1.2.22', 'kube-apiserver sets service-account-key-file', ({ api }) => 'service-account-key-file' in api],
  [
    '1.2.23',
    'kube-apiserver sets etcd-certfile and etcd-keyfile',
    ({ api }) => 'etcd-certfile' in api && 'etcd-keyfile' in api,
  ],
  [
    '1.2.24',
    'kube-apiserver sets tls-cert-file and tls-private-key-file',
    ({ api }) => 'tls-cert-file' in api && 'tls-private-key-file' in api,
  ],
  ['1.2.25', 'kube-apiserver sets client-ca-file', ({ api }) => 'client-ca-file' in api],
  ['1.2.26', 'kube-apiserver sets etcd-cafile', ({ api }) => 'etcd-cafile' in api],
  [
    '1.2.30',
    'kube-apiserver disables service-account-extend-token-expiration',
    ({ api }) => api['service-account-extend-token-expiration'] === 'false',
    'As upstream and RKE: clients that do not read their token again would fail after an hour; set it in services.kube-api.extra_args',
  ],
  ['1.3.2', 'kube-controller-manager disables profiling', ({ manager }) => manager['profiling'] === 'false'],
  [
    '1.3.3',
    'kube-controller-manager enables use-service-account-credentials',
    ({ manager }) => manager['use-service-account-credentials'] === 'true',
  ],
  [
    '1.3.4',
    'kube-controller-manager sets service-account-private-key-file',
    ({ manager }) => 'service-account-private-key-file' in manager,
  ],
  ['1.3.5', 'kube-controller-manager sets root-ca-file', ({ manager }) => 'root-ca-file' in manager],
  [
    '1.3.6',
    'kube-controller-manager does not disable RotateKubeletServerCertificate',
    ({ manager }) => !String(manager['feature-gates'] ?? '').includes('=false'),
  ],
  [
    '1.3.7',
    'kube-controller-manager sets bind-address to 127.0.0.1',
    ({ manager }) => manager['bind-address'] === '127.0.0.1',
  ],
  ['1.4.1', 'kube-scheduler disables profiling', ({ scheduler }) => scheduler['profiling'] === 'false'],
  [
    '1.4.2',
    'kube-scheduler sets bind-address to 127.0.0.1',
    ({ scheduler }) => scheduler['bind-address'] === '127.0.0.1',
  ],
  ['2.1', 'etcd sets cert-file and key-file', ({ etcd }) => 'cert-file' in etcd && 'key-file' in etcd],
  ['2.2', 'etcd enables client-cert-auth', ({ etcd }) => etcd['client-cert-auth'] === 'true'],
  ['2.3', 'etcd does not set auto-tls', ({ etcd }) => etcd['auto-tls'] === undefined],
  [
    '2.4',
    'etcd sets peer-cert-file and peer-key-file',
    ({ etcd }) => 'peer-cert-file' in etcd && 'peer-key-file' in etcd,
  ],
  ['2.5', 'etcd enables peer-client-cert-auth', ({ etcd }) => etcd['peer-client-cert-auth'] === 'true'],
  ['2.6', 'etcd does not set peer-auto-tls', ({ etcd }) => etcd['peer-auto-tls'] === undefined],
  ['2.7', 'etcd has a separate CA', ({ etcd, api }) => etcd['trusted-ca-file'] !== api['client-ca-file']],
  ['3.2.1', 'the audit policy file has mode 600', (b) => isPrivate(b, /audit-policy\.yaml$/)],
  ['4.1.3', 'the kube-proxy kubeconfig has mode 600', (b) => isPrivate(b, /kubecfg-kube-proxy\.yaml$/)],
  ['4.1.5', 'the kubelet kubeconfig has mode 600', (b) => isPrivate(b, /kubecfg-kube-node\.yaml$/)],
  ['4.1.7', 'the client CA has mode 644 or stricter', (b) => isPrivate(b, /kube-ca\.pem$/)],
  ['4.2.1', 'kubelet disables anonymous-auth', ({ kubelet }) => kubelet['anonymous-auth'] === 'false'],
  ['4.2.2', 'kubelet uses authorization mode Webhook', ({ kubelet }) => kubelet['authorization-mode'] === 'Webhook'],
  ['4.2.3', 'kubelet sets client-ca-file', ({ kubelet }) => 'client-ca-file' in kubelet],
  ['4.2.4', 'kubelet sets read-only-port to 0', ({ kubelet }) => kubelet['read-only-port'] === '0'],
  [
    '4.2.5',
    'kubelet does not set streaming-connection-idle-timeout to 0',
    ({ kubelet }) => kubelet['streaming-connection-idle-timeout'] !== '0',
  ],
  [
    '4.2.6',
    'kubelet enables make-iptables-util-chains',
    ({ kubelet }) => kubelet['make-iptables-util-chains'] === 'true',
  ],
  [
    '4.2.10',
    'kubelet does not disable rotate-certificates',
    ({ kubelet }) => kubelet['rotate-certificates'] !== 'false',
  ],
  [
    '4.2.12',
    'kubelet allows only strong TLS cipher suites',
    ({ kubelet }) => /^(TLS_ECDHE_\w+(GCM|POLY1305)_\w+,?)+$/.test(String(kubelet['tls-cipher-suites'])),
  ],
  [
    '4.3.1',
    'kube-proxy does not listen on 0.0.0.0 for metrics',
    ({ proxy }) => !String(proxy['metrics-bind-address'] ?? '').startsWith('0.0.0.0'),
  ],
]

describe('CIS benchmark of a hardened cluster', () => {
  const byDefault = build('')
  const hardened = build(`services:
  kube-api: {extra_args: {service-account-extend-token-expiration: false}}
  kubelet: {generate_serving_certificate: true}
`)

  for (const [id, what, passes, explained] of CHECKS) {
    it(`${id}: ${what}`, () => {
      assert.ok(passes(hardened))
      // An explanation that is no longer needed must be removed.
      assert.equal(passes(byDefault), explained === undefined)
    })
  }
})
