import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { MINIMAL } from './cluster-file.fixture.ts'
import { type ClusterFile, readClusterFile } from './cluster-file.ts'
import { clusterJsonSchema } from './cluster-json-schema.ts'
import { askCluster } from './config-questions.ts'
import { configText, type Draft } from './config-text.ts'

/** Returns the questions for given answers, and the resulting draft. */
function talk(...answers: readonly string[]): { questions: string[]; draft: Draft } {
  const dialog = askCluster()
  const questions: string[] = []
  const left = [...answers]
  let step = dialog.next()
  while (!step.done) {
    const { text, byDefault, complaint } = step.value
    questions.push(`${complaint === undefined ? '' : `(${complaint}) `}${text} [${byDefault}]`)
    step = dialog.next(left.shift() ?? '')
  }
  return { questions, draft: step.value }
}

function read(text: string): ClusterFile {
  const { cluster, faults } = readClusterFile(text)
  assert.deepEqual(faults, [])
  return cluster as ClusterFile
}

describe('questions of hyperkube build config', () => {
  it("are RKE's, in its order", () => {
    const { questions } = talk('', '', '10.0.0.1')
    assert.deepEqual(questions, [
      'Cluster Level SSH Private Key Path [~/.ssh/id_rsa]',
      'Number of Hosts [1]',
      'SSH Address of host (1) []',
      'SSH Port of host (1) [22]',
      'SSH Private Key Path of host (1) []',
      'SSH User of host (1) [ubuntu]',
      'Is host (1) a Control Plane host (y/n)? [y]',
      'Is host (1) a Worker host (y/n)? [n]',
      'Is host (1) an etcd host (y/n)? [n]',
      'Override Hostname of host (1) []',
      'Internal IP of host (1) []',
      'Network Plugin Type (canal, flannel, calico, none) [canal]',
      'Authentication Strategy (x509, x509|webhook) [x509]',
      'Authorization Mode (rbac, none) [rbac]',
      'Cluster domain [cluster.local]',
      'Service Cluster IP Range [10.43.0.0/16]',
      'Cluster Network CIDR [10.42.0.0/16]',
      'Cluster DNS Service IP [10.43.0.10]',
      'Add addon manifest URLs or YAML files [no]',
    ])
  })

  it('lead to a cluster with two machines and a custom service range', () => {
    const one = ['10.0.0.1', '', '', 'root', 'y', 'n', 'y', 'cp', '192.168.0.1']
    const two = ['10.0.0.2', '2222', '~/.ssh/two', 'root', 'n', 'y', 'n', '', '']
    const { questions, draft } = talk(
      '',
      '2',
      ...one,
      ...two,
      'flannel',
      '',
      '',
      '',
      '172.20.0.0/16',
      '',
      '',
      'y',
      'a.yaml',
    )
    assert.ok(questions.includes('Cluster DNS Service IP [172.20.0.10]'))
    const cluster = read(configText(draft))
    assert.deepEqual(
      cluster.nodes.map(({ address, port, user, role, hostname_override, internal_address, ssh_key_path }) => [
        address,
        port,
        user,
        role.join(),
        hostname_override,
        internal_address,
        ssh_key_path,
      ]),
      [
        ['10.0.0.1', 22, 'root', 'etcd,controlplane', 'cp', '192.168.0.1', '~/.ssh/id_rsa'],
        ['10.0.0.2', 2222, 'root', 'worker', '10.0.0.2', '10.0.0.2', '~/.ssh/two'],
      ],
    )
    assert.equal(cluster.network.plugin, 'flannel')
    assert.equal(cluster.services.kubelet.cluster_dns_server, '172.20.0.10')
    assert.deepEqual(cluster.addons_include, ['a.yaml'])
  })

  it('are repeated after an invalid answer', () => {
    const { questions } = talk('', 'none', '1', '', '300.1.1.1', '10.0.0.1', '', '', '', 'nope')
    assert.deepEqual(questions.slice(2, 6), [
      '("none" is not a number of hosts) Number of Hosts [1]',
      'SSH Address of host (1) []',
      '(A host needs an address) SSH Address of host (1) []',
      '("300.1.1.1" is not an IP address) SSH Address of host (1) []',
    ])
    assert.ok(questions.includes('("nope" is neither yes nor no) Is host (1) a Control Plane host (y/n)? [y]'))
  })
})

describe('cluster.yml that hyperkube build config writes', () => {
  it('is the same cluster as without its empty keys', () => {
    const draft = { nodes: [{ address: '10.0.0.1', user: 'root', role: ['controlplane', 'etcd', 'worker'] }] }
    assert.deepEqual(read(configText(draft)), read(MINIMAL))
  })

  it('causes errors for the required keys that are still empty', () => {
    const text = configText({ nodes: [{ address: '', user: 'ubuntu', role: ['controlplane', 'etcd'] }] })
    const { faults } = readClusterFile(text)
    assert.deepEqual(
      faults.map(({ path }) => path),
      ['nodes[0].address'],
    )
    assert.match(text, /^# The machines\nnodes:\n- nodeName: ""\n {2}address: ""$/m)
    assert.doesNotMatch(text, /docker|win_|pod_security_policy/)
  })
})

describe('editor schema of cluster.yml', () => {
  type Schema = Readonly<Record<string, unknown>> & { readonly properties?: Readonly<Record<string, Schema>> }
  const schema = clusterJsonSchema() as Schema

  it('contains every key with its description and values', () => {
    assert.deepEqual(schema['required'], ['nodes'])
    const plugin = schema.properties?.['network']?.properties?.['plugin']
    assert.equal(plugin?.['default'], 'canal')
    const mode = schema.properties?.['authorization']?.properties?.['mode']
    assert.deepEqual(mode?.['enum'], ['rbac', 'none', '', null])
    assert.equal(schema.properties?.['services']?.properties?.['kube_api']?.['deprecated'], true)
    assert.equal(schema['additionalProperties'], false)
  })
})
