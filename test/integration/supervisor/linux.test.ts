/**
 * Tests the supervisor on this machine, with programs that only sleep. It restarts processes that die, and a new
 * supervisor takes them over.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'
import { createSeededRandom } from '#lib/random.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { endAllIn, livingIn, NAMES, SETTINGS, wholeIn, writeStandIns } from './stand-ins.ts'

const ROUNDS = Number(process.env['NODE_ROUNDS'] ?? 4)

class Machine implements AsyncDisposable {
  readonly root: string
  #supervisor: ChildProcess | undefined

  private constructor(root: string) {
    this.root = root
  }

  static async create(): Promise<Machine> {
    const root = await mkdtemp(join(tmpdir(), 'hyperkube-node-'))
    await writeStandIns(root)
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGTERM')
    await endAllIn(this.root)
    await rm(this.root, { recursive: true, force: true })
  }
}

test('the supervisor restarts the processes of a Linux worker', async (t) => {
  await using machine = await Machine.create()
  machine.start()
  let living = await wholeIn(machine.root)

  await t.test('whatever dies comes back, one of each kind', async () => {
    const random = createSeededRandom(3)
    for (let round = 0; round < ROUNDS; round++) {
      const victims = NAMES.filter(() => random.int(2) === 0)
      const before = living
      for (const name of victims) for (const pid of before[name] ?? []) process.kill(pid, 'SIGKILL')
      for (const name of victims) {
        await eventually(
          () => livingIn(machine.root),
          (now) => now[name]?.length === 1 && now[name][0] !== before[name]?.[0],
        )
      }
      living = await wholeIn(machine.root)
      // flanneld goes along with kubelet; the others are left alone.
      const touched = new Set<string>([...victims, ...(victims.includes('kubelet') ? ['flanneld'] : [])])
      for (const name of NAMES) if (!touched.has(name)) assert.deepEqual(living[name], before[name], name)
    }
  })

  await t.test('a new supervisor takes over what the one before has started', async () => {
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const before = await wholeIn(machine.root)
      await machine.stop(signal)
      machine.start()
      const [victim] = before['kube-proxy'] ?? []
      process.kill(victim ?? 0, 'SIGKILL')
      const after = await eventually(
        () => livingIn(machine.root),
        (now) => now['kube-proxy']?.length === 1 && now['kube-proxy'][0] !== victim,
      )
      assert.deepEqual([after['kubelet'], after['flanneld']], [before['kubelet'], before['flanneld']])
    }
  })

  await t.test('its status can be asked for, and is well once the supervisor has looked', async () => {
    const ask = async (): Promise<{ code: number; said: string }> => {
      const asked = spawn(HYPERKUBE, ['node', 'status', `--root=${machine.root}`])
      let said = ''
      asked.stdout.on('data', (data: Buffer) => (said += data.toString()))
      const [code] = (await once(asked, 'close')) as [number]
      return { code, said }
    }
    const { said } = await eventually(ask, ({ code }) => code === 0)
    assert.match(said, /"kube-proxy": \d/)
  })
})
