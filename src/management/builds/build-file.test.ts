import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { clusterText } from '#provision/simulated-build.fixture.ts'

import { divideFile, faultLines, fileDigest, readBuildFile } from './build-file.ts'

const FILE = clusterText({ '1': ['etcd', 'controlplane', 'worker'] })
const NODE = 'nodes:\n- {address: 10.0.0.1, user: root, role: [etcd, controlplane], '

const faultsOf = (file: string): readonly string[] => faultLines(readBuildFile({ file }, {}).faults)

describe('readBuildFile() for a cluster file', () => {
  it('reports all faults with their lines', () => {
    assert.deepEqual(faultsOf('nodes:\n- {adress: a, user: root, role: [etcd]}\n')[0]?.slice(0, 15), 'cluster.yml:2:3')
    assert.equal(faultsOf(`${FILE}nonsense: 1\nrubbish: 2\n`).length, 2)
  })

  for (const [name, file, path] of [
    ['a path of a key', `${NODE}ssh_key_path: /root/.ssh/id_rsa}\n`, 'nodes[0].ssh_key_path'],
    ['a path of a key for all machines', `${FILE}ssh_key_path: ~/.ssh/id_rsa\n`, 'ssh_key_path'],
    ['a path of a certificate', `${NODE}ssh_cert_path: /a}\n`, 'nodes[0].ssh_cert_path'],
    [
      'a path of a key of the bastion',
      `${FILE}bastion_host: {address: b, user: u, ssh_key_path: /a}\n`,
      'bastion_host.ssh_key_path',
    ],
    ['the agent', `${FILE}ssh_agent_auth: true\n`, 'ssh_agent_auth'],
    ['manifests of files', `${FILE}addons_include: [/etc/shadow]\n`, 'addons_include'],
    ['manifests of addresses', `${FILE}addons_include: ["http://169.254.169.254/"]\n`, 'addons_include'],
    ['archives', `${FILE}image_archives: [/var/lib/a.tar]\n`, 'image_archives'],
    ['loopback', FILE.replace('10.0.0.1', '127.0.0.1'), 'nodes[0].address'],
    ['the metadata service', FILE.replace('10.0.0.1', '169.254.169.254'), 'nodes[0].address'],
    ['loopback of IPv6', FILE.replace('10.0.0.1', '"::1"'), 'nodes[0].address'],
    ['a name of loopback', FILE.replace('10.0.0.1', 'localhost'), 'nodes[0].address'],
  ] as const)
    it(`refuses ${name} of the server`, () => {
      const { faults, cluster } = readBuildFile({ file }, {})
      assert.ok(
        faults.some((fault) => fault.path === path),
        JSON.stringify(faults),
      )
      assert.equal(cluster, undefined)
    })

  it('accepts the usual values of these keys', () => {
    assert.deepEqual(faultsOf(`${FILE}ssh_agent_auth: false\naddons_include: []\nssh_key_path: ""\n`), [])
  })
})

describe('divideFile() for a cluster file with secrets', () => {
  const more = [
    'private_registries: [{url: r.example, user: u, password: hunter2hunter2}]',
    'services: {etcd: {backup_config: {s3backupconfig: {bucket_name: b, endpoint: e, access_key: a, secret_key: s3cret}}}}',
  ]
  const file = `${FILE}${more.join('\n')}\n`

  it('takes keys and passwords out and puts them back', () => {
    const { build, secrets } = divideFile({ file })
    assert.deepEqual(secrets, {
      'private_registries[0].password': 'hunter2hunter2',
      'services.etcd.backup_config.s3backupconfig.secret_key': 's3cret',
    })
    assert.doesNotMatch(JSON.stringify(build), /hunter2|s3cret/)
    const { cluster, faults } = readBuildFile(build, secrets)
    assert.deepEqual(faults, [])
    assert.deepEqual(cluster, readBuildFile({ file }, {}).cluster)
  })

  it('leaves a file without any as it was written', () => {
    const text = `# mine\n${FILE}`
    assert.deepEqual(divideFile({ file: text }), { build: { file: text }, secrets: {} })
    assert.equal(readBuildFile({ file: text }, {}).text, text)
  })

  it('takes out manifests with Secrets', () => {
    const addons = 'addons: |\n  apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n'
    assert.deepEqual(Object.keys(divideFile({ file: FILE + addons }).secrets), ['addons'])
    assert.deepEqual(divideFile({ file: FILE + addons.replace('Secret', 'ConfigMap') }).secrets, {})
  })

  it('takes out SSH keys of machines, and of the bastion', () => {
    const key = '-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----\n'
    const config = {
      nodes: [{ address: 'a', user: 'u', role: ['worker'], ssh_key: key }],
      bastion_host: { address: 'b', user: 'u', ssh_key: key },
    }
    const { build, secrets } = divideFile({ config })
    assert.deepEqual(Object.keys(secrets), ['nodes[0].ssh_key', 'bastion_host.ssh_key'])
    assert.doesNotMatch(JSON.stringify(build), /BEGIN/)
  })
})

describe('fileDigest() of a cluster file', () => {
  it('changes with the file and with its secrets', () => {
    const digests = [{ file: 'a' }, { file: 'b' }, { file: 'a', revision: '1' }, { config: { a: 1 } }].map(fileDigest)
    assert.equal(new Set(digests).size, 4)
    assert.equal(fileDigest({ file: 'a', approval: 'Automatic' }), digests[0])
  })
})
