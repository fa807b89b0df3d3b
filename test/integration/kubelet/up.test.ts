/**
 * Tests `hyperkube up` with containers, started by root: kubectl runs pods on this machine, and a reset leaves nothing.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { containerdPaths } from '#containerd/paths.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { makeImages } from '../../images/main.ts'
import { upstreamPath } from '../../upstream/programs.ts'
import { whyNoContainerd } from './containerd-bed.ts'

const HYPERKUBE = join(import.meta.dirname, '..', '..', '..', 'bin', 'hyperkube')
/** Upstream's kubectl if the conformance run has built it, else the machine's. */
const KUBECTL = existsSync(upstreamPath('kubectl')) ? upstreamPath('kubectl') : 'kubectl'
const hasKubectl = spawnSync(KUBECTL, ['version', '--client'], { stdio: 'ignore' }).error === undefined
const missing = (await whyNoContainerd()) ?? (hasKubectl ? undefined : 'there is no kubectl')
if (missing !== undefined) process.stderr.write(`up with containers: skipping, ${missing}\n`)

const LIMIT_MS = 120_000
/** Another address than the API server's, which still reaches the kubelet for logs and exec. */
const KUBELET_ADDRESS = '127.0.0.2'

describe('hyperkube up with containers', { skip: missing ?? false }, () => {
  let folder = ''
  let child: ChildProcess | undefined
  const flag = (): string => `--data-dir=${join(folder, 'data')}`

  async function up(): Promise<void> {
    const where = [flag(), `--kubeconfig=${join(folder, 'kubeconfig')}`, '--secure-port=0', '-o=json']
    const node = ['--runtime=containerd', `--kubelet-address=${KUBELET_ADDRESS}`]
    child = spawn(HYPERKUBE, ['up', ...node, ...where], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit').then(([code]) => assert.fail(`It ended with ${code}`))
    await Promise.race([once(child.stdout ?? child, 'data'), ended])
  }

  async function stop(signal: NodeJS.Signals): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  const hyperkube = (...args: string[]): string => execFileSync(HYPERKUBE, args, { encoding: 'utf8' })
  const kubectl = (...args: string[]): string =>
    execFileSync(KUBECTL, [`--kubeconfig=${join(folder, 'kubeconfig')}`, ...args], { encoding: 'utf8' }).trim()

  async function comes(what: string, expected: RegExp, look: () => string): Promise<void> {
    const endMs = realClock.elapsed() + LIMIT_MS
    for (;;) {
      const found = look()
      if (expected.test(found)) return
      if (realClock.elapsed() > endMs) assert.fail(`${what} is ${JSON.stringify(found)}, not ${String(expected)}`)
      await sleep(realClock, 200)
    }
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hyperkube-up-'))
    await up()
    const [archive = ''] = await makeImages(join(folder, 'images'), ['busybox'], () => undefined)
    assert.match(hyperkube('image', 'load', flag(), archive), /^Loaded docker\.io\/library\/busybox:latest$/m)
  })
  after(async () => {
    await stop('SIGTERM')
    hyperkube('reset', flag())
    rmSync(folder, { recursive: true, force: true })
  })

  const containerOf = (pod: string): string =>
    kubectl(
      'get',
      'pod',
      pod,
      '-o=jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}',
    )

  it('runs a pod with a token, and serves logs and exec', async () => {
    const script = 'echo hello from $HOSTNAME; trap exit TERM; while true; do sleep 0.1; done'
    kubectl('run', 'app', '--image=busybox', '--image-pull-policy=Never', '--', 'sh', '-c', script)
    kubectl('wait', '--for=condition=Ready', 'pod/app', '--timeout=120s')
    assert.equal(kubectl('logs', 'app'), 'hello from app')
    const token = '/var/run/secrets/kubernetes.io/serviceaccount'
    assert.equal(kubectl('exec', 'app', '--', 'ls', token), 'ca.crt\nnamespace\ntoken')
    assert.match(kubectl('get', 'nodes', '-o=wide'), /Ready .* containerd:\/\//)
    // Input is passed through unchanged, without a shell.
    const typed = spawnSync(KUBECTL, [`--kubeconfig=${join(folder, 'kubeconfig')}`, 'exec', '-i', 'app', '--', 'cat'], {
      input: '$(reboot); `x`\n',
      encoding: 'utf8',
    })
    assert.equal(typed.stdout, '$(reboot); `x`\n')
  })

  it('listens on the address of --kubelet-address and requires credentials there', () => {
    const port = kubectl('get', 'nodes', '-o=jsonpath={.items[0].status.daemonEndpoints.kubeletEndpoint.Port}')
    const status = (...args: string[]): string =>
      spawnSync('curl', ['-sk', '-m', '10', '-o', '/dev/null', '-w', '%{http_code}', ...args], { encoding: 'utf8' })
        .stdout
    const metrics = `https://${KUBELET_ADDRESS}:${port}/metrics`
    assert.equal(status(metrics), '401')
    const statusFor = (account: string): string =>
      status('-H', `Authorization: Bearer ${kubectl('create', 'token', account)}`, metrics)
    for (const account of ['agent', 'stranger']) kubectl('create', 'serviceaccount', account)
    const role = '--clusterrole=system:kubelet-api-admin'
    kubectl('create', 'clusterrolebinding', 'agent', role, '--serviceaccount=default:agent')
    assert.deepEqual(['agent', 'stranger'].map(statusFor), ['200', '403'])
  })

  it('serves the ports of kube-proxy, and sets the conntrack timeout of half-closed connections to an hour', () => {
    const get = (url: string): string => spawnSync('curl', ['-s', '-m', '10', url], { encoding: 'utf8' }).stdout
    const ip = kubectl('get', 'nodes', '-o=jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}')
    for (const host of ['127.0.0.1', ip]) assert.match(get(`http://${host}:10256/healthz`), /"nodeEligible":true/)
    assert.equal(get('http://127.0.0.1:10249/proxyMode'), 'nftables')
    assert.match(get('http://127.0.0.1:10249/metrics'), /^kubeproxy_sync_proxy_rules_last_timestamp_seconds/m)
    const timeout = '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait'
    assert.equal(readFileSync(timeout, 'utf8').trim(), '3600')
  })

  it('connects a pod and the machine to a pod through a Service', async () => {
    const script = 'while true; do echo hello | nc -l -p 8080; done'
    const at = ['--image=busybox', '--image-pull-policy=Never', '--restart=Never']
    kubectl('run', 'server', ...at, '--port=8080', '--', 'sh', '-c', script)
    kubectl('expose', 'pod', 'server', '--port=80', '--target-port=8080')
    kubectl('wait', '--for=condition=Ready', 'pod/server', '--timeout=120s')
    const ip = kubectl('get', 'service', 'server', '-o=jsonpath={.spec.clusterIP}')
    const ask = ['sh', '-c', `nc -w 2 ${ip} 80 </dev/null || true`]
    await comes('the answer to a pod', /^hello$/, () => kubectl('exec', 'app', '--', ...ask))
    await comes('the answer to the machine', /^hello$/, () =>
      spawnSync('curl', ['-s', '--http0.9', '-m', '2', `http://${ip}/`], { encoding: 'utf8' }).stdout.trim(),
    )
    kubectl('delete', 'service/server', 'pod/server', '--grace-period=1')
  })
  const tables = (): string => execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' })
  const ownTables = (): RegExp => new RegExp(`${containerdPaths(join(folder, 'data')).network}-policies`)

  it('keeps its containers running if it is killed', async () => {
    const id = containerOf('app')
    await stop('SIGKILL')
    assert.match(tables(), ownTables(), 'policies hold for pods that run on')
    await up()
    kubectl('run', 'later', '--image=busybox', '--image-pull-policy=Never', '--restart=Never', '--', 'true')
    await comes('the phase', /^Succeeded$/, () => kubectl('get', 'pod', 'later', '-o=jsonpath={.status.phase}'))
    assert.equal(containerOf('app'), id)
  })

  it('stops its containers when it is stopped, and starts the pods again', async () => {
    const id = containerOf('app')
    await stop('SIGINT')
    assert.doesNotMatch(tables(), ownTables())
    const cgroups = containerdPaths(join(folder, 'data')).cgroupParent
    const held = ['memory', '.'].map((name) => join('/sys/fs/cgroup', name, cgroups, 'kubepods', 'cgroup.procs'))
    for (const file of held) if (existsSync(file)) assert.equal(readFileSync(file, 'utf8'), '')
    await up()
    await comes('the container', /^containerd:\/\/\w+ 1$/, () => containerOf('app'))
    assert.notEqual(containerOf('app').split(' ')[0], id.split(' ')[0])
    kubectl('wait', '--for=condition=Ready', 'pod/app', '--timeout=120s')
    kubectl('delete', 'pod', 'app', '--timeout=60s')
  })

  it('leaves no files and processes after a reset', async () => {
    await stop('SIGTERM')
    hyperkube('reset', flag())
    const { network, cgroupParent, stateFolder } = containerdPaths(join(folder, 'data'))
    assert.equal(existsSync(join(folder, 'data')), false)
    assert.equal(existsSync(stateFolder), false)
    assert.doesNotMatch(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(`${folder}|${stateFolder}`))
    assert.doesNotMatch(execFileSync('ip', ['-o', 'link'], { encoding: 'utf8' }), new RegExp(network))
    assert.doesNotMatch(execFileSync('iptables-save', ['-t', 'nat'], { encoding: 'utf8' }), new RegExp(network))
    assert.doesNotMatch(execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' }), new RegExp(network))
    assert.doesNotMatch(tables(), ownTables())
    for (const name of ['memory', 'cpu', 'pids', '.'])
      assert.equal(existsSync(join('/sys/fs/cgroup', name, cgroupParent)), false)
  })
})
