import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { hyperkubeVersion } from '#model/version.ts'

import { KUBE_PROGRAMS, main, OWN_PROGRAMS } from './main.ts'
import { programName } from './process.ts'

function run(invokedAs: string, ...args: string[]): Promise<Outcome> {
  const { signal } = new AbortController()
  return runProgram((context) => main(invokedAs, context, signal), { args })
}

const ALL = [...KUBE_PROGRAMS, ...OWN_PROGRAMS]

describe('table of hyperkube programs', () => {
  it("has the names and aliases of upstream's hyperkube in its order", () => {
    assert.deepEqual(
      KUBE_PROGRAMS.map(({ name, aliases = [] }) => [name, ...aliases]),
      [
        ['kube-apiserver', 'apiserver'],
        ['kube-controller-manager', 'controller-manager'],
        ['kube-proxy', 'proxy'],
        ['kube-scheduler', 'scheduler'],
        ['kubectl'],
        ['kubelet'],
        ['cloud-controller-manager'],
      ],
    )
  })

  it('contains the commands that upstream does not have', () => {
    const names = [
      'up',
      'down',
      'status',
      'console',
      'reset',
      'at',
      'assets',
      'snapshot',
      'image',
      'flanneld',
      'kube-network-policies',
      'dns',
      'ingress-controller',
      'metrics-server',
      'cluster-proportional-autoscaler',
      'build',
      'node',
      'server',
      'cluster-agent',
      'kube-api-auth',
      'codec',
    ]
    assert.deepEqual(
      OWN_PROGRAMS.filter(({ hidden }) => hidden !== true).map(({ name }) => name),
      names,
    )
  })

  it('has unique names', () => {
    const names = ALL.flatMap(({ name, aliases = [] }) => [name, ...aliases])
    assert.equal(new Set(names).size, names.length)
  })

  for (const command of ALL) {
    const { name, aliases = [] } = command
    it(`runs ${name} by name, alias and symlink, each with the help of that program`, async () => {
      assert.equal((await command.load()).name, name)
      for (const word of [name, ...aliases]) {
        const { code, out } = await run('hyperkube', word, '--help')
        assert.equal(code, 0)
        assert.match(out, new RegExp(`Usage:\n {2}hyperkube ${name} `))
        const linked = await run(`/some/where/${word}`, '--help')
        assert.equal(linked.code, 0)
        assert.match(linked.out, new RegExp(`Usage:\n {2}${name} `))
      }
    })
  }
})

describe('programName() of a command path', () => {
  for (const [path, name] of [
    ['/usr/local/bin/kubectl', 'kubectl'],
    ['kubectl', 'kubectl'],
    ['./proxy', 'proxy'],
    ['C:\\bin\\kubelet.exe', 'kubelet'],
    ['C:\\bin\\kubelet.CMD', 'kubelet'],
    ['/repo/bin/entry.mjs', 'entry.mjs'],
    ['', ''],
  ] as const) {
    it(`returns "${name}" for "${path}"`, () => assert.equal(programName(path), name))
  }
})

describe('hyperkube', () => {
  it('prints help and fails without a command', async () => {
    const { code, out, err } = await run('hyperkube')
    assert.deepEqual([code, err], [1, ''])
    for (const { name } of ALL.filter(({ hidden }) => !hidden)) assert.match(out, new RegExp(`\n {2}${name} `))
    assert.match(out, /--make-symlinks/)
  })

  it('prints help and succeeds with --help', async () => {
    assert.deepEqual([(await run('hyperkube', '--help')).code, (await run('hyperkube', '-h')).code], [0, 0])
  })

  it('prints the versions of hyperkube and Kubernetes', async () => {
    const { code, out } = await run('hyperkube', '--version')
    assert.equal(code, 0)
    assert.equal(out, `hyperkube v${hyperkubeVersion()}\nKubernetes v1.36.4 (reported as v1.36.4+hyperkube1)\n`)
  })

  it('passes --version to the program that is named before it', async () => {
    assert.equal((await run('hyperkube', 'kubelet', '--version')).out, 'Kubernetes v1.36.4+hyperkube1\n')
    assert.equal((await run('kubelet', '--version')).out, 'Kubernetes v1.36.4+hyperkube1\n')
    assert.match(
      (await run('kubelet', '--version=raw')).out,
      /^version\.Info\{Major:"1", Minor:"36", .*GitVersion:"v1\.36\.4\+hyperkube1"/,
    )
  })

  it('suggests the nearest command for an unknown one', async () => {
    assert.deepEqual(await run('hyperkube', 'kubeclt'), {
      code: 1,
      out: '',
      err: 'Error: unknown command "kubeclt" for "hyperkube"\n\nDid you mean this?\n\tkubectl\n\tkubelet\n\nRun \'hyperkube --help\' for usage.\n',
    })
  })

  it('rejects unknown flags', async () => {
    const { code, err } = await run('hyperkube', '--nope', 'kubectl')
    assert.deepEqual([code, err], [1, "Error: unknown flag: --nope\nRun 'hyperkube --help' for usage.\n"])
  })
})

describe('programs of the management server with invalid flags', () => {
  const rows: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [['server', '--listen=8443'], /^Error: --listen: "8443" is not an address with a port/],
    [['server', '--listen=:70000'], /^Error: --listen: ":70000" is not/],
    [
      ['server', '--server-url=http://a.example'],
      /^Error: --server-url: "http:\/\/a.example" is not of the form https/,
    ],
    [['server', '--server-url=https://a.example/x'], /^Error: --server-url:/],
    [['server', '--tls-cert-file=a.crt'], /^Error: --tls-cert-file and --tls-private-key-file must be set together/],
    [['kube-api-auth', '--listen=0.0.0.0:6440'], /^Error: --listen: "0.0.0.0:6440" is not a loopback address/],
    [['kube-api-auth', '--listen=127.0.0.1'], /^Error: --listen: "127.0.0.1" is not a loopback address/],
    [['cluster-agent'], /^Error: --server must be of the form https/],
    [['cluster-agent', '--server=http://a.example'], /^Error: --server must be of the form https/],
  ]
  for (const [args, message] of rows) {
    it(`fail with a clear error: ${args.join(' ')}`, async () => {
      const { code, err } = await run(
        'hyperkube',
        ...args,
        ...(args[0] === 'server' ? ['--data-dir=/nonexistent'] : []),
      )
      assert.equal(code, 1)
      assert.match(err, message)
    })
  }
})
