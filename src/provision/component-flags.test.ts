/** What programs are told and given. That our programs take it is shown where they are, in src/cmd/build. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseYaml } from '#lib/yaml.ts'

import { readClusterFile } from './cluster-file.ts'
import type { ClusterFile, ClusterNode } from './cluster.ts'
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

describe('the flags of a program', () => {
  const cluster = clusterOf()

  it('are for the programs that the roles of a machine need', () => {
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

  it('name the etcd of the machine itself first', () => {
    const flags = componentFlags('kube-apiserver', cluster, at(cluster, 1))
    assert.equal(flags['etcd-servers'], 'https://192.168.0.2:2379,https://10.0.0.1:2379')
    assert.equal(flags['advertise-address'], '192.168.0.2')
  })

  it('let etcd listen where others can reach it', () => {
    const open = componentFlags('etcd', cluster, at(cluster, 0))
    assert.equal(open['listen-client-urls'], 'https://0.0.0.0:2379')
    const inside = componentFlags('etcd', cluster, at(cluster, 1))
    assert.equal(inside['listen-client-urls'], 'https://192.168.0.2:2379,https://127.0.0.1:2379')
    assert.equal(inside['name'], 'etcd-cp')
    assert.equal(inside['initial-cluster'], undefined)
  })

  it('end with what the file adds, which replaces ours', () => {
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

  it('keep ordinary pods away from machines that are no workers', () => {
    assert.equal(
      componentFlags('kubelet', cluster, at(cluster, 1))['register-with-taints'],
      'node-role.kubernetes.io/etcd=true:NoExecute,node-role.kubernetes.io/controlplane=true:NoSchedule',
    )
    assert.equal(componentFlags('kubelet', cluster, at(cluster, 2))['register-with-taints'], undefined)
    assert.deepEqual(roleTaints({ role: ['etcd', 'controlplane', 'worker'] }), [])
    assert.deepEqual(roleLabels(at(cluster, 0)), { 'node-role.kubernetes.io/etcd': 'true' })
  })

  it('tell the kubelet of the cache of names on its machine', () => {
    const cached = clusterOf('dns: {nodelocal: {ip_address: 169.254.20.10}}')
    assert.equal(componentFlags('kubelet', cached, at(cached, 2))['cluster-dns'], '169.254.20.10')
  })
})

describe('the files of programs', () => {
  const pathsOn = (cluster: ClusterFile, index: number): string[] =>
    configFiles(cluster, at(cluster, index), 'an encryption configuration').map(({ path }) => path)

  it('are where they are read', () => {
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

  it('tell admission what the file says, and our own where it says nothing', () => {
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

  it('are in the words of each cloud', () => {
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

  it('give the kubelet the plugin of a registry', () => {
    const cluster = clusterOf('private_registries: [{url: r, ecr_credential_plugin: {aws_access_key_id: k}}]')
    const [file] = configFiles(cluster, at(cluster, 2), '')
    assert.deepEqual((parseYaml(file?.content ?? '') as { providers: { env: object[] }[] }).providers[0]?.env, [
      { name: 'AWS_ACCESS_KEY_ID', value: 'k' },
    ])
  })
})
