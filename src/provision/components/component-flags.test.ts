/** Tests the flags and files of the programs of a cluster. src/cmd/build tests that our programs accept them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseYaml } from '#lib/yaml/yaml.ts'

import type { ClusterFile, ClusterNode } from '../cluster.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { admissionConfiguration, configFiles } from './component-files.ts'
import { argumentsOf, componentFlags, componentsOf, roleLabels, roleTaints } from './component-flags.ts'

function clusterOf(more = ''): ClusterFile {
  const { cluster, faults } = readClusterFile(`nodes:
- {address: 10.0.0.1, user: root, role: [etcd]}
- {address: 10.0.0.2, internal_address: 192.168.0.2, user: root, role: [controlplane, etcd], hostname_override: cp}
- {address: 10.0.0.3, user: root, role: [worker]}
${more}
`)
  assert.deepEqual(faults, [])
  return cluster as ClusterFile
}

const at = (cluster: ClusterFile, index: number): ClusterNode => cluster.nodes[index] as ClusterNode

describe('flags of components on a machine', () => {
  const cluster = clusterOf()

  it('belong to the programs that the roles of the machine need', () => {
    assert.deepEqual(componentsOf(cluster, at(cluster, 0)), ['etcd', 'kubelet', 'kube-proxy'])
    assert.deepEqual(componentsOf(cluster, at(cluster, 1)), [
      'etcd',
      'kube-apiserver',
      'kube-controller-manager',
      'kube-scheduler',
      'kubelet',
      'kube-proxy',
    ])
    assert.deepEqual(componentsOf(cluster, at(cluster, 2)), ['kubelet', 'kube-proxy'])
  })

  it('list the local etcd member first', () => {
    const flags = componentFlags('kube-apiserver', cluster, at(cluster, 1))
    assert.equal(flags['etcd-servers'], 'https://192.168.0.2:2379,https://10.0.0.1:2379')
    assert.equal(flags['advertise-address'], '192.168.0.2')
  })

  it('make etcd listen on reachable addresses', () => {
    const open = componentFlags('etcd', cluster, at(cluster, 0))
    assert.equal(open['listen-client-urls'], 'https://0.0.0.0:2379')
    const inside = componentFlags('etcd', cluster, at(cluster, 1))
    assert.equal(inside['listen-client-urls'], 'https://192.168.0.2:2379,https://127.0.0.1:2379')
    assert.equal(inside['name'], 'etcd-cp')
    assert.equal(inside['initial-cluster'], undefined)
  })

  it('end with extra_args of cluster.yml, which override ours', () => {
    const extra = clusterOf(`services:
  kubelet: {extra_args: {event-qps: 50, max-pods: 250}, extra_args_array: {cluster-dns: [1.1.1.1, 2.2.2.2]}}`)
    const args = argumentsOf(componentFlags('kubelet', extra, at(extra, 2)))
    assert.deepEqual(args.slice(-4), [
      '--event-qps=50',
      '--max-pods=250',
      '--cluster-dns=1.1.1.1',
      '--cluster-dns=2.2.2.2',
    ])
    assert.equal(args.filter((arg) => /^--(event-qps|cluster-dns)=/.test(arg)).length, 3)
  })

  it('register taints if the machine is no worker', () => {
    assert.equal(
      componentFlags('kubelet', cluster, at(cluster, 1))['register-with-taints'],
      'node-role.kubernetes.io/etcd=true:NoExecute,node-role.kubernetes.io/controlplane=true:NoSchedule',
    )
    assert.equal(componentFlags('kubelet', cluster, at(cluster, 2))['register-with-taints'], undefined)
    assert.deepEqual(roleTaints({ role: ['etcd', 'controlplane', 'worker'] }), [])
    assert.deepEqual(roleLabels(at(cluster, 0)), { 'node-role.kubernetes.io/etcd': 'true' })
  })

  it('pass the address of the local DNS cache to the kubelet', () => {
    const cached = clusterOf('dns: {nodelocal: {ip_address: 169.254.20.10}}')
    assert.equal(componentFlags('kubelet', cached, at(cached, 2))['cluster-dns'], '169.254.20.10')
  })
})

describe('files of components on a machine', () => {
  const pathsOn = (cluster: ClusterFile, index: number): string[] =>
    configFiles(cluster, at(cluster, index), 'an encryption configuration').map(({ path }) => path)

  it('have the paths that the programs read', () => {
    const cluster = clusterOf('authentication: {strategy: x509|webhook}')
    assert.deepEqual(pathsOn(cluster, 1), [
      '/etc/kubernetes/kube-api-authn-webhook.yaml',
      '/etc/kubernetes/ssl/encryption.yaml',
      '/etc/kubernetes/admission.yaml',
      '/etc/kubernetes/audit-policy.yaml',
    ])
    assert.deepEqual(pathsOn(cluster, 2), [])
    const quiet = clusterOf('services: {kube-api: {audit_log: {enabled: false}}}')
    assert.ok(!pathsOn(quiet, 1).includes('/etc/kubernetes/audit-policy.yaml'))
  })

  it('contain the admission configuration of cluster.yml merged with our defaults', () => {
    const cluster = clusterOf(`services:
  kube-api:
    pod_security_configuration: restricted
    admission_configuration:
      kind: AdmissionConfiguration
      plugins: [{name: EventRateLimit, configuration: {limits: []}}, {name: Other}]`)
    const { plugins } = admissionConfiguration(cluster) as { plugins: { name: string; configuration?: object }[] }
    assert.deepEqual(
      plugins.map(({ name }) => name),
      ['PodSecurity', 'EventRateLimit', 'Other'],
    )
    assert.deepEqual(plugins[1]?.configuration, { limits: [] })
    assert.match(JSON.stringify(plugins[0]), /"namespaces":\["ingress-nginx","kube-system"\]/)
  })

  it('have the format of each cloud provider', () => {
    const contentOf = (more: string): string | undefined => {
      const cluster = clusterOf(more)
      return configFiles(cluster, at(cluster, 2), '').find(({ path }) => path.endsWith('cloud-config'))?.content
    }
    assert.equal(
      contentOf('cloud_provider: {name: vsphere, vsphereCloudProvider: {global: {insecure-flag: true, user: "a b"}}}'),
      '[Global]\ninsecure-flag = true\nuser = "a b"\n',
    )
    assert.deepEqual(parseYaml(contentOf('cloud_provider: {name: azure, azureCloudProvider: {tenantId: t}}') ?? ''), {
      tenantId: 't',
    })
    assert.equal(contentOf('cloud_provider: {name: custom, customCloudProvider: text}'), 'text')
    assert.equal(contentOf(''), undefined)
  })

  it('configure a credential provider of the kubelet for a registry', () => {
    const cluster = clusterOf('private_registries: [{url: r, ecr_credential_plugin: {aws_access_key_id: k}}]')
    const [file] = configFiles(cluster, at(cluster, 2), '')
    assert.deepEqual((parseYaml(file?.content ?? '') as { providers: { env: object[] }[] }).providers[0]?.env, [
      { name: 'AWS_ACCESS_KEY_ID', value: 'k' },
    ])
  })
})
