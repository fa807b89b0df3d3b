/**
 * Tests the kubelet on cgroup v2 and across a reboot: `node test/upstream/cgroup-v2.ts [--skip-conformance] [--keep]`
 * as root. `hyperkube up` runs as a service in a virtual machine with systemd. Upstream's tests of in-place resize run
 * against it, and the cgroups of a pod are checked. Then the machine is rebooted and its power is cut. Every pod must
 * return as the same object, with its containers restarted once. Exits with 1 on a failure. Takes an hour, because the
 * machine is emulated, and needs an otherwise idle host. crun creates the containers, because upstream's tests limit
 * them to a hundredth of a processor. With that, runc's Go runtime does not start within the two minutes that the tests
 * allow.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

import type { Node, Pod } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { installed } from '../bench/server-under-test.ts'
import { makeImages } from '../images/main.ts'
import { startMachine, type VirtualMachine, whyNoMachine } from './virtual-machine.ts'

const { values: options } = parseArgs({
  options: { 'skip-conformance': { type: 'boolean' }, keep: { type: 'boolean' } },
})
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const PORT = 6443
const PROGRAM = '/opt/hyperkube/node_modules/hyperkube/bin/hyperkube'
const UNIT = `[Unit]
Description=hyperkube
After=network.target
[Service]
ExecStart=${PROGRAM} up --runtime containerd --bind-address 0.0.0.0 --secure-port ${PORT} --data-dir /var/lib/hyperkube --kubeconfig /etc/hyperkube.kubeconfig
KillMode=mixed
Delegate=yes
[Install]
WantedBy=multi-user.target
`
const IMAGES = ['busybox', 'e2e-busybox', 'pause']
const WAIT_MS = 600_000
const LOOK_MS = 3000

/** One of each way to stay: alone, by a Deployment, a StatefulSet and a DaemonSet; with limits, to look at their cgroups. */
const OBJECTS = (() => {
  const image = 'registry.k8s.io/e2e-test-images/busybox:1.37.0-1'
  const container = { name: 'c', image, command: ['sleep', '1000000'] }
  const limited = { ...container, resources: { limits: { cpu: '200m', memory: '32Mi' } } }
  const labels = (app: string) => ({
    selector: { matchLabels: { app } },
    template: { metadata: { labels: { app } }, spec: { containers: [container], terminationGracePeriodSeconds: 1 } },
  })
  const of = (apiVersion: string, kind: string, name: string, spec: object): object => ({
    apiVersion,
    kind,
    metadata: { name },
    spec,
  })
  const items = [
    of('v1', 'Pod', 'alone', { containers: [limited] }),
    of('apps/v1', 'Deployment', 'deployed', { replicas: 2, ...labels('deployed') }),
    of('apps/v1', 'StatefulSet', 'stateful', { serviceName: 'stateful', replicas: 1, ...labels('stateful') }),
    of('apps/v1', 'DaemonSet', 'daemon', labels('daemon')),
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
})()
const PODS = 5
/** The directory of the container's own cgroup is found from inside: it is the root of what a container sees. */
const LIMITS = ['cpu.max', 'memory.max'] as const

let failures = 0
function check(what: string, isSo: boolean, detail = ''): void {
  say(`${isSo ? 'ok  ' : 'FAIL'} ${what}${detail === '' ? '' : `: ${detail}`}`)
  if (!isSo) failures++
}

async function main(): Promise<number> {
  const reason = whyNoMachine()
  if (reason !== undefined) return (say(`not run: ${reason}`), 0)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-vm-'))
  const program = await installed()
  const archives = await makeImages(join(folder, 'images'), IMAGES, say)
  await writeFile(join(folder, 'hyperkube.service'), UNIT)
  const files = {
    [dirname(dirname(dirname(dirname(program))))]: '/opt/hyperkube',
    [join(folder, 'hyperkube.service')]: '/etc/systemd/system/hyperkube.service',
    ...Object.fromEntries(archives.map((file, at) => [file, `/srv/images/${at}.tar`])),
  }
  const machine = await startMachine({ folder: join(folder, 'machine'), files, ports: [PORT] })
  try {
    await judge(machine, folder)
  } finally {
    if (options.keep) say(`kept: ${folder}`)
    else {
      await machine[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    }
  }
  say(failures === 0 ? 'all checks passed' : `${failures} checks failed`)
  return failures === 0 ? 0 : 1
}

async function judge(machine: VirtualMachine, folder: string): Promise<void> {
  check('the machine has cgroup v2', (await machine.shell('stat -fc %T /sys/fs/cgroup')).trim() === 'cgroup2fs')
  await machine.shell('ln -s /usr/bin/crun /usr/local/sbin/runc')
  await machine.shell('systemctl daemon-reload && systemctl enable --now hyperkube')
  await untilReady(machine)
  await machine.shell(`for f in /srv/images/*.tar; do ${PROGRAM} image load --data-dir /var/lib/hyperkube $f; done`)
  await kubectl(machine, 'apply -f -', OBJECTS)
  const before = await untilRunning(machine, 0)
  await lookAtCgroups(machine)
  if (options['skip-conformance'] !== true)
    check('resizing in place, by upstream’s tests', await resizing(machine, folder))
  await comesBack('a reboot', machine, before, async () => {
    await machine.shell('systemctl reboot').catch(() => undefined)
    await sleep(realClock, 20_000)
  })
  await comesBack('the power cut', machine, await untilRunning(machine, 0), async () => {
    await machine.cut()
    await machine.start()
  })
}

async function lookAtCgroups(machine: VirtualMachine): Promise<void> {
  const read = LIMITS.map((file) => `cat /sys/fs/cgroup/${file}`).join('; ')
  const [cpu = '', memory = ''] = (await kubectl(machine, `exec alone -- sh -c '${read}'`)).trim().split('\n')
  check('the processor’s limit is in the cgroup', cpu === '20000 100000', cpu)
  check('the memory’s limit is in the cgroup', memory === String(32 << 20), memory)
}

async function resizing(machine: VirtualMachine, folder: string): Promise<boolean> {
  const file = join(folder, 'kubeconfig')
  const text = await machine.shell('cat /etc/hyperkube.kubeconfig')
  await writeFile(file, text.replaceAll(/https:\/\/[^\s"]+/g, `https://127.0.0.1:${machine.port(PORT)}`), {
    mode: 0o600,
  })
  const script = join(import.meta.dirname, '..', 'conformance', 'main.ts')
  const args = [script, '--group', 'node-inplace-resize', '--kubeconfig', file, '--procs', '1']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  const [code] = (await once(child, 'exit')) as [number]
  return code === 0
}

async function comesBack(
  what: string,
  machine: VirtualMachine,
  before: readonly Pod[],
  goDown: () => Promise<void>,
): Promise<void> {
  const boot = (await machine.shell('cat /proc/sys/kernel/random/boot_id')).trim()
  await goDown()
  await untilReady(machine)
  const now = (await machine.shell('cat /proc/sys/kernel/random/boot_id')).trim()
  check(`${what}: the machine started anew`, now !== boot)
  // The API server is back before the kubelet, and knows what that said last.
  await until('the node says so', async () => {
    const { items } = JSON.parse(await kubectl(machine, 'get node -o json')) as { items: Node[] }
    return items[0]?.status?.nodeInfo?.bootID === now
  })
  const after = await untilRunning(machine, 1, before)
  const uids = new Set(after.map(({ metadata }) => metadata?.uid))
  const lost = before.filter(({ metadata }) => !uids.has(metadata?.uid)).map(({ metadata }) => metadata?.name)
  check(`${what}: all ${before.length} pods are there, the same ones`, lost.length === 0, lost.join(', '))
  const restarts = after.map(({ status }) => status?.containerStatuses?.[0]?.restartCount ?? -1)
  say(`     restarts: ${restarts.join(', ')}`)
}

/** The service answers and its node is ready. */
async function untilReady(machine: VirtualMachine): Promise<void> {
  const line = 'wait --for=condition=Ready node --all --timeout=20s'
  await until('the node is ready', async () => (await kubectl(machine, line)).includes('condition met'))
}

/** All pods run, their containers started again since `before`. */
async function untilRunning(
  machine: VirtualMachine,
  restarts: number,
  before: readonly Pod[] = [],
): Promise<readonly Pod[]> {
  const old = new Map(
    before.map(({ metadata, status }) => [metadata?.uid, status?.containerStatuses?.[0]?.containerID]),
  )
  let pods: readonly Pod[] = []
  await until('all pods run', async () => {
    pods = (JSON.parse(await kubectl(machine, 'get pods -o json')) as { items: Pod[] }).items
    return (
      pods.length === PODS &&
      pods.every(({ metadata, status }) => {
        const [container] = status?.containerStatuses ?? []
        const isNew = restarts === 0 || container?.containerID !== old.get(metadata?.uid)
        return container?.ready === true && isNew
      })
    )
  })
  return pods
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const end = realClock.elapsed() + WAIT_MS
  let last: unknown
  while (realClock.elapsed() < end) {
    try {
      if (await isSo()) return
    } catch (error) {
      last = error
    }
    await sleep(realClock, LOOK_MS)
  }
  throw new Error(`In ${WAIT_MS / 60_000} minutes it did not come about that ${what}`, { cause: last })
}

function kubectl(machine: VirtualMachine, line: string, input = ''): Promise<string> {
  return machine.shell(`KUBECONFIG=/etc/hyperkube.kubeconfig ${PROGRAM} kubectl ${line}`, { input, timeoutMs: 120_000 })
}

process.exitCode = await main()
