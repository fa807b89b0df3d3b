/** The supervisor on this machine, with programs that do nothing but live: what dies comes back, and a new supervisor takes over. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'
import { eventually } from '#testing/eventually.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'

const NAMES = ['kubelet', 'flanneld', 'kube-proxy'] as const
const ROUNDS = Number(process.env['NODE_ROUNDS'] ?? 4)

const SETTINGS = {
  clusterCidr: '10.42.0.0/16',
  clusterDomain: 'cluster.local',
  serviceCidr: '10.43.0.0/16',
  dnsServiceIp: '10.43.0.10',
  cniComponent: 'flannel',
  cniMode: 'host-gw',
  nodeIp: '127.0.0.1',
  nodeName: 'n1',
}

class Machine implements AsyncDisposable {
  readonly root: string
  #supervisor: ChildProcess | undefined

  private constructor(root: string) {
    this.root = root
  }

  static async create(): Promise<Machine> {
    const root = await mkdtemp(join(tmpdir(), 'hyperkube-node-'))
    const bin = join(root, 'usr/local/lib/hyperkube/bin')
    await mkdir(bin, { recursive: true })
    // Each notes that it began; flanneld leaves what says that there is a network.
    for (const name of NAMES) {
      const makes = name === 'flanneld' ? `mkdir -p ${root}/run/flannel; : > ${root}/run/flannel/subnet.env` : ':'
      await writeFile(join(bin, name), `#!/bin/sh\necho ${name} $$ >> ${root}/began\n${makes}\nexec sleep 1000\n`)
      await chmod(join(bin, name), 0o755)
    }
    await writeFile(join(root, 'node.yaml'), JSON.stringify(SETTINGS))
    return new Machine(root)
  }

  start(): void {
    const health = ['--kubelet-health=', '--kube-proxy-health=']
    const args = ['node', 'run', ...health, `--root=${this.root}`, `--config=${join(this.root, 'node.yaml')}`]
    this.#supervisor = spawn(HYPERKUBE, args, { stdio: 'ignore' })
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#supervisor === undefined || this.#supervisor.exitCode !== null) return
    const ended = once(this.#supervisor, 'exit')
    this.#supervisor.kill(signal)
    await ended
  }

  /** All that ever began, and of each kind those that live. */
  async living(): Promise<Record<string, number[]>> {
    const lines = (await readFile(join(this.root, 'began'), 'utf8').catch(() => '')).trim().split('\n')
    const alive = await Promise.all(lines.map(async (line) => [...line.split(' '), await isAlive(line.split(' ')[1])]))
    return Object.fromEntries(
      NAMES.map((name) => [
        name,
        alive.filter(([of, , lives]) => of === name && lives === true).map(([, pid]) => Number(pid)),
      ]),
    )
  }

  /** Waits until there is one of each. */
  whole(): Promise<Record<string, number[]>> {
    return eventually(
      () => this.living(),
      (living) => NAMES.every((name) => living[name]?.length === 1),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGTERM')
    for (const pids of Object.values(await this.living())) for (const pid of pids) process.kill(pid, 'SIGKILL')
    await rm(this.root, { recursive: true, force: true })
  }
}

async function isAlive(pid = ''): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return /\) [^ZX] /.test(stat)
}

test('a worker on Linux is kept alive', async (t) => {
  await using machine = await Machine.create()
  machine.start()
  let living = await machine.whole()

  await t.test('whatever dies comes back, one of each kind', async () => {
    const random = createSeededRandom(3)
    for (let round = 0; round < ROUNDS; round++) {
      const victims = NAMES.filter(() => random.int(2) === 0)
      const before = living
      for (const name of victims) for (const pid of before[name] ?? []) process.kill(pid, 'SIGKILL')
      for (const name of victims) {
        await eventually(
          () => machine.living(),
          (now) => now[name]?.length === 1 && now[name][0] !== before[name]?.[0],
        )
      }
      living = await machine.whole()
      // flanneld goes along with kubelet; the others are left alone.
      const touched = new Set<string>([...victims, ...(victims.includes('kubelet') ? ['flanneld'] : [])])
      for (const name of NAMES) if (!touched.has(name)) assert.deepEqual(living[name], before[name], name)
    }
  })

  await t.test('a new supervisor takes over what the one before has started', async () => {
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const before = await machine.whole()
      await machine.stop(signal)
      machine.start()
      const [victim] = before['kube-proxy'] ?? []
      process.kill(victim ?? 0, 'SIGKILL')
      const after = await eventually(
        () => machine.living(),
        (now) => now['kube-proxy']?.length === 1 && now['kube-proxy'][0] !== victim,
      )
      assert.deepEqual([after['kubelet'], after['flanneld']], [before['kubelet'], before['flanneld']])
    }
  })

  await t.test('its status can be asked for', async () => {
    const asked = spawn(HYPERKUBE, ['node', 'status', `--root=${machine.root}`])
    let said = ''
    asked.stdout.on('data', (data: Buffer) => (said += data.toString()))
    const [code] = (await once(asked, 'close')) as [number]
    assert.equal(code, 0)
    assert.match(said, /"kube-proxy": \d/)
  })
})
