import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { assertUpstreamFlags } from '#kits/cmd/upstream-flags.ts'

import { KUBELET_FLAGS } from './flags.ts'
import { kubelet } from './kubelet.ts'

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'

function run(files: Readonly<Record<string, string>>, ...args: string[]): Promise<Outcome> {
  const { signal } = new AbortController()
  const readFile = (path: string): Promise<string> =>
    Object.hasOwn(files, path)
      ? Promise.resolve(files[path] ?? '')
      : Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
  return runProgram((context) => kubelet.run(context, signal), { args, readFile })
}

/** Independent of the cgroup version of the machine. */
const ANY = '--fail-cgroupv1=false'

async function errorOf(files: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const { err, code } = await run(files, ANY, ...args)
  assert.equal(code, 1)
  return /Error: ([^]*)\n$/.exec(err)?.[1] ?? err
}

describe('kubelet flags', () => {
  it("have upstream's names, types and defaults, except for four defaults that are insecure", () => {
    assertUpstreamFlags(KUBELET_FLAGS, 'kubelet', [
      'anonymous-auth:  false, not bool true',
      'authentication-token-webhook:  true, not bool ',
      'authorization-mode: string Webhook, not string AlwaysAllow',
      'read-only-port: int32 0, not int32 10255',
    ])
  })

  const refusals: readonly [args: readonly string[], message: string][] = [
    [[], 'failed to run Kubelet: standalone mode is not supported: set --kubeconfig'],
    [
      ['--cloud-provider=aws'],
      'failed to run Kubelet: failed to create kubelet: cloud provider "aws" was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider',
    ],
    [
      ['--topology-manager-policy-options=prefer-closest-numa-nodes=true'],
      'topologyManagerPolicyOptions {"prefer-closest-numa-nodes":"true"} is not supported: distances between NUMA nodes are ignored',
    ],
    [
      ['--max-pods=-1', '--port=0'],
      'failed to validate kubelet configuration, error: [invalid configuration: maxPods (--max-pods) -1 must not be a negative number, invalid configuration: port (--port) 0 must be between 1 and 65535, inclusive]',
    ],
    [
      ['--node-labels=node-role.kubernetes.io/worker=,node.kubernetes.io/x=y'],
      "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [node-role.kubernetes.io/worker]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region, failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os, node.kubernetes.io/instance-type, topology.kubernetes.io/region, topology.kubernetes.io/zone)",
    ],
    [
      ['--kube-reserved=gpu=1'],
      'failed to run Kubelet: --kube-reserved value failed to parse: cannot reserve "gpu" resource',
    ],
    [['--eviction-hard=disk<1Gi'], 'failed to run Kubelet: unsupported eviction signal disk'],
  ]
  for (const [args, message] of refusals) {
    it(`are refused with "${message.slice(0, 90)}": ${args.join(' ') || 'no arguments'}`, async () =>
      assert.equal(await errorOf({}, ...args), message))
  }

  const misread: readonly [arg: string, message: string][] = [
    [
      '--register-with-taints=a=b:Never',
      'invalid argument "a=b:Never" for "--register-with-taints" flag: invalid taint effect: Never, unsupported taint effect',
    ],
    [
      '--register-with-taints=a=b:NoSchedule,a=c:NoSchedule',
      'invalid argument "a=b:NoSchedule,a=c:NoSchedule" for "--register-with-taints" flag: duplicated taints with the same key and effect: {a c NoSchedule <nil>}',
    ],
    ['--address=here', 'invalid argument "here" for "--address" flag: "here" is not a valid IP address'],
    [
      '--eviction-hard=memory.available=1Gi',
      'invalid argument "memory.available=1Gi" for "--eviction-hard" flag: malformed pair, expect string<string',
    ],
    [
      '--reserved-memory=x:memory=1Gi',
      'invalid argument "x:memory=1Gi" for "--reserved-memory" flag: failed to convert the NUMA node ID, expected integer, got x',
    ],
  ]
  for (const [arg, message] of misread) {
    it(`are refused: ${arg}`, async () => {
      const { err } = await run({}, arg)
      assert.equal(/^Error: (.*)$/m.exec(err)?.[1], message)
    })
  }

  it('cause a warning if they are deprecated or have no effect', async () => {
    const { err } = await run({}, ANY, '--max-pods=10', '--housekeeping-interval=5s', '--volume-plugin-dir=/x')
    assert.match(err, /^Flag --max-pods has been deprecated, This parameter should be set via the config file/m)
    assert.match(err, /--housekeeping-interval has no effect: there is no cadvisor/)
    assert.match(err, /volumePluginDir has no effect: there are no plugins of that kind/)
  })
})

describe('configuration file of the kubelet', () => {
  const refusals: readonly [more: string, message: string][] = [
    [
      'maxPods: many',
      'failed to load kubelet config file, path: c.yaml, error: failed to load Kubelet config file c.yaml, error json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32',
    ],
    [
      'imageGCLowThresholdPercent: 90',
      'failed to validate kubelet configuration, error: invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85',
    ],
    [
      'featureGates: {Nonsense: true}',
      'failed to set feature gates from initial flags-based config: unrecognized feature gate: Nonsense',
    ],
    [
      'shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 30s',
      'failed to validate kubelet configuration, error: invalid configuration: shutdownGracePeriodCriticalPods {30s} must be <= shutdownGracePeriod {10s}',
    ],
    [
      'enforceNodeAllocatable: [pods, pods]',
      'failed to validate kubelet configuration, error: invalid configuration: duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)',
    ],
  ]
  for (const [more, message] of refusals) {
    it(`is refused if it contains ${more}`, async () => {
      assert.equal(await errorOf({ '/nowhere/c.yaml': `${HEAD}${more}\n` }, '--config=c.yaml'), message)
    })
  }

  it('may contain unknown fields, which cause a warning', async () => {
    const { err } = await run({ '/nowhere/c.yaml': `${HEAD}foo: 1\n` }, ANY, '--config=c.yaml')
    assert.match(
      err,
      /"Using lenient decoding as strict decoding failed" err="strict decoding error: unknown field \\"foo\\""/,
    )
  })

  it('causes an error if it is missing or empty', async () => {
    const start =
      'failed to load kubelet config file, path: c.yaml, error: failed to load Kubelet config file c.yaml, error '
    assert.equal(
      await errorOf({}, '--config=c.yaml'),
      `${start}failed to read kubelet config file "/nowhere/c.yaml", error: open /nowhere/c.yaml: no such file or directory`,
    )
    assert.equal(
      await errorOf({ '/nowhere/c.yaml': '' }, '--config=c.yaml'),
      `${start}kubelet config file "/nowhere/c.yaml" was empty`,
    )
  })

  it('is overridden by drop-in files, and drop-in files by flags', async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'drop-ins-'))
    t.after(() => rm(dir, { recursive: true }))
    await mkdir(join(dir, '20'))
    const files: Record<string, string> = {
      '10-a.conf': `${HEAD}maxPods: -2\npodsPerCore: -2\nport: -2\n`,
      '20/b.conf': `${HEAD}podsPerCore: -3\nport: -3\n`,
      '30-c.txt': 'not one of them',
    }
    await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(dir, name), text)))
    const read = Object.fromEntries(Object.entries(files).map(([name, text]) => [join(dir, name), text]))
    const config = { ...read, '/nowhere/c.yaml': `${HEAD}maxPods: -1\nkubeAPIBurst: -1\n` }
    assert.equal(
      await errorOf(config, '--config=c.yaml', `--config-dir=${dir}`, '--port=0'),
      'failed to validate kubelet configuration, error: [' +
        [
          'kubeAPIBurst (--kube-api-burst) -1 must not be a negative number',
          'maxPods (--max-pods) -2 must not be a negative number',
          'podsPerCore (--pods-per-core) -3 must not be a negative number',
          'port (--port) 0 must be between 1 and 65535, inclusive',
        ]
          .map((text) => `invalid configuration: ${text}`)
          .join(', ') +
        ']',
    )
    const without = { ...config, [join(dir, '10-a.conf')]: 'maxPods: 1\n' }
    assert.match(
      await errorOf(without, `--config-dir=${dir}`),
      /^failed to merge kubelet configs: failed to walk through kubelet dropin directory ".*": failed to load kubelet dropin file, path: .*10-a\.conf, error: Object 'Kind' is missing/,
    )
  })
})
