/** Tests valid cluster.yml files and their results. Invalid files are in cluster-faults.test.ts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { KUBERNETES_VERSION } from '#model/version.ts'

import { GENERATED } from '../cluster-generated.fixture.ts'
import { FILES } from './cluster-file.fixture.ts'
import { type ClusterFile, formatFault, readClusterFile } from './cluster-file.ts'

const files = { ...FILES, GENERATED }

function read(text: string): ClusterFile {
  const { cluster, faults } = readClusterFile(text)
  assert.deepEqual(
    faults.map((fault) => formatFault('cluster.yml', fault)),
    [],
  )
  return cluster as ClusterFile
}

function noticesOf(text: string): string[] {
  return readClusterFile(text).notices.map(({ line, path }) => `${line} ${path}`)
}

describe('cluster.yml', () => {
  for (const [name, text] of Object.entries(files)) {
    it(`is accepted as in the sample "${name.toLowerCase().replaceAll('_', ' ')}"`, () => void read(text))
  }

  it('may be empty or list other machines with --local', () => {
    const lone = { name: 'here', address: '10.0.0.9', user: 'me' }
    for (const text of ['', '# nothing\n', files.MINIMAL]) {
      const [node, ...others] = readClusterFile(text, lone).cluster?.nodes ?? []
      assert.deepEqual([node?.hostname_override, node?.address, node?.user], ['here', '10.0.0.9', 'me'])
      assert.deepEqual(node?.role.toSorted(), ['controlplane', 'etcd', 'worker'])
      assert.deepEqual(others, [])
    }
    assert.equal(readClusterFile('- a list', lone).faults.length, 1)
  })

  it('requires only machines', () => {
    const { nodes, services, network, authentication, ...rest } = read(files.MINIMAL)
    assert.deepEqual(nodes, [
      {
        address: '10.0.0.1',
        port: 22,
        user: 'root',
        ssh_agent_auth: false,
        ssh_key_path: '~/.ssh/id_rsa',
        internal_address: '10.0.0.1',
        role: ['etcd', 'controlplane', 'worker'],
        hostname_override: '10.0.0.1',
        docker_socket: '/var/run/docker.sock',
        labels: {},
        taints: [],
      },
    ])
    assert.equal(services['kube-api'].service_cluster_ip_range, '10.43.0.0/16')
    assert.equal(services['kube-api'].service_node_port_range, '30000-32767')
    assert.equal(services['kube-controller'].cluster_cidr, '10.42.0.0/16')
    assert.equal(services.kubelet.cluster_dns_server, '10.43.0.10')
    assert.equal(services.kubelet.cluster_domain, 'cluster.local')
    assert.deepEqual(services.etcd.backup_config, {
      enabled: true,
      interval_hours: 12,
      retention: 6,
      safe_timestamp: false,
      timeout: 300,
    })
    assert.equal(services['kube-api'].audit_log.configuration.path, '/var/log/kube-audit/audit-log.json')
    assert.equal(network.plugin, 'canal')
    assert.deepEqual(authentication, { strategy: 'x509', sans: [] })
    assert.equal(rest.authorization.mode, 'rbac')
    assert.equal(rest.ingress.provider, 'nginx')
    assert.equal(rest.dns.provider, 'coredns')
    assert.equal(rest.monitoring.provider, 'metrics-server')
    assert.equal(rest.cluster_name, 'local')
    assert.equal(rest.kubernetes_version, KUBERNETES_VERSION)
    assert.equal(rest.addon_job_timeout, 45)
    assert.deepEqual(rest.upgrade_strategy, {
      max_unavailable_worker: '10%',
      max_unavailable_controlplane: 1,
      drain: false,
      node_drain_input: {
        force: false,
        ignore_daemonsets: true,
        delete_local_data: false,
        grace_period: -1,
        timeout: 120,
      },
    })
    assert.equal(rest.bastion_host, undefined)
  })

  it('with empty keys is the same as without these keys', () => {
    const { nodes, ...generated } = read(files.GENERATED)
    const { nodes: few, ...minimal } = read(files.MINIMAL)
    assert.deepEqual(generated, minimal)
    assert.deepEqual({ ...nodes[0], user: 'root' }, few[0])
  })

  it('keeps the text of values unchanged', () => {
    const { services } = read(files.FULL)
    assert.deepEqual(services['kube-api'].extra_args, {
      'audit-log-path': '-',
      'delete-collection-workers': '3',
      v: '4',
    })
    const { services: odd } = read(
      `${files.MINIMAL}services: {scheduler: {extra_args: {a: 1.50, b: yes, c: 0x10, d: }}}\n`,
    )
    assert.deepEqual(odd.scheduler.extra_args, { a: '1.50', b: 'yes', c: '0x10', d: '' })
  })

  it('accepts common alternative spellings', () => {
    const { services, private_registries: registries } = read(`${files.MINIMAL}services:
  kube_api: {service_cluster_ip_range: 10.90.0.0/16}
private_registries:
- url: 1.dkr.ecr.eu.amazonaws.com
  ecrCredentialPlugin: {aws_access_key_id: a, aws_secret_access_key: b}
`)
    assert.equal(services['kube-api'].service_cluster_ip_range, '10.90.0.0/16')
    assert.equal(registries[0]?.ecr_credential_plugin?.aws_access_key_id, 'a')
  })

  it('assigns the tenth address of the service range to DNS, from either of two keys', () => {
    for (const service of ['kube-api', 'kube-controller']) {
      const { services } = read(`${files.MINIMAL}services: {${service}: {service_cluster_ip_range: 172.20.0.0/16}}\n`)
      assert.equal(services.kubelet.cluster_dns_server, '172.20.0.10')
      assert.equal(services['kube-api'].service_cluster_ip_range, '172.20.0.0/16')
      assert.equal(services['kube-controller'].service_cluster_ip_range, '172.20.0.0/16')
    }
  })

  it('has default drain settings if drain is true', () => {
    const { upgrade_strategy } = read(`${files.MINIMAL}upgrade_strategy: {drain: true}\n`)
    assert.equal(upgrade_strategy.drain, true)
    assert.equal(upgrade_strategy.node_drain_input.timeout, 120)
  })

  it('may contain the age of snapshots as a text or a number', () => {
    const { interval_hours, retention } = read(files.OLD_SNAPSHOTS).services.etcd.backup_config
    assert.deepEqual({ interval_hours, retention }, { interval_hours: 6, retention: 4 })
  })

  it('uses the SSH key of the cluster for machines without one', () => {
    const { nodes, bastion_host } = read(files.FULL)
    assert.deepEqual(
      nodes.map((node) => node.ssh_key_path),
      ['~/.ssh/test', '/home/user/.ssh/id_rsa', '/home/user/.ssh/id_rsa', '~/.ssh/test'],
    )
    assert.ok(nodes.every((node) => node.ssh_agent_auth))
    assert.equal(bastion_host?.ssh_key_path, '/home/user/.ssh/bastion_rsa')
  })

  it('may use anchors and merge keys of YAML', () => {
    const { nodes } = read(`nodes:
- &first {address: 10.0.0.1, user: root, role: [controlplane, etcd]}
- {<<: *first, address: 10.0.0.2, role: [worker]}
`)
    assert.deepEqual(
      nodes.map(({ address, user, role }) => [address, user, ...role]),
      [
        ['10.0.0.1', 'root', 'etcd', 'controlplane'],
        ['10.0.0.2', 'root', 'worker'],
      ],
    )
  })

  it('has a local authorization webhook if none is configured', () => {
    const { webhook } = read(files.VSPHERE).authentication
    assert.match(webhook?.config_file ?? '', /127\.0\.0\.1:6440\/v1\/authenticate/)
  })

  it('causes a note for values that have another effect than in RKE', () => {
    assert.deepEqual(noticesOf(files.MINIMAL), [])
    assert.deepEqual(noticesOf(files.GENERATED), ['68 network.plugin'])
    assert.deepEqual(noticesOf(files.FULL), [
      '38 enable_cri_dockerd',
      '45 private_registries[0].is_default',
      '52 kubernetes_version',
      '53 system_images',
      '67 services.etcd.uid',
      '68 services.etcd.gid',
      '131 services.kubelet.infra_container_image',
      '152 cloud_provider.name',
      '153 addon_job_timeout',
      '155 network.plugin',
      '160 network.options.canal_autoscaler_priority_class_name',
      '161 network.options.canal_priority_class_name',
    ])
    assert.deepEqual(noticesOf(files.WINDOWS), [
      '14 services.kubelet.win_extra_args',
      '16 services.kubelet.win_extra_binds',
    ])
    assert.deepEqual(noticesOf(files.CALICO_DUAL_STACK), [
      '6 network.plugin',
      '8 network.options.calico_cloud_provider',
    ])
  })
})
