/** Tests the supervisor as a systemd service, with a fake systemctl that records calls and simulates their effects. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { SETTINGS } from './stand-ins.ts'

/** Enabled and active are files. */
const SYSTEMCTL = `#!/bin/sh
echo "$@" >> "$STATE/asked"
case $1 in
  is-enabled) [ -e "$STATE/enabled" ] ;;
  is-active) [ -e "$STATE/active" ] ;;
  enable) : > "$STATE/enabled" ;;
  disable) rm -f "$STATE/enabled" ;;
  start) : > "$STATE/active" ;;
  stop) rm -f "$STATE/active" ;;
esac
`

class Machine implements AsyncDisposable {
  readonly root: string
  readonly #state: string

  private constructor(root: string) {
    this.root = root
    this.#state = join(root, 'state')
  }

  static async create(): Promise<Machine> {
    const machine = new Machine(await mkdtemp(join(tmpdir(), 'hyperkube-node-service-')))
    await mkdir(join(machine.root, 'bin'))
    await mkdir(machine.#state)
    const file = join(machine.root, 'bin/systemctl')
    await writeFile(file, SYSTEMCTL)
    await chmod(file, 0o755)
    await writeFile(join(machine.root, 'node.yaml'), JSON.stringify(SETTINGS))
    return machine
  }

  async node(...args: readonly string[]): Promise<string> {
    const env = { ...process.env, STATE: this.#state, PATH: `${join(this.root, 'bin')}:${process.env['PATH']}` }
    const { stdout } = await promisify(execFile)(HYPERKUBE, ['node', ...args, `--root=${this.root}`], { env })
    return stdout
  }

  /** The calls of systemctl since the previous call of this function. */
  async asked(): Promise<string[]> {
    const file = join(this.#state, 'asked')
    const text = await readFile(file, 'utf8').catch(() => '')
    await rm(file, { force: true })
    return text.split('\n').filter((line) => line !== '')
  }

  read(path: string): Promise<string> {
    return readFile(join(this.root, path), 'utf8')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true })
  }
}

const UNIT = 'hyperkube-node.service'
const UNIT_FILE = `etc/systemd/system/${UNIT}`

test('the supervisor runs as a systemd service', async (t) => {
  await using machine = await Machine.create()
  const config = `--config=${join(machine.root, 'node.yaml')}`

  await t.test('once it is installed', async () => {
    await machine.node('install', config)
    assert.deepEqual(await machine.asked(), [
      'daemon-reload',
      `try-restart ${UNIT}`,
      `is-enabled --quiet ${UNIT}`,
      `enable ${UNIT}`,
      `is-active --quiet ${UNIT}`,
      `start ${UNIT}`,
    ])
    const unit = await machine.read(UNIT_FILE)
    assert.match(unit, /^ExecStart=\S+hyperkube node run --config=\S+ --logs=journal --root=\S+$/m)
    for (const name of ['kubelet', 'flanneld', 'kube-proxy'])
      assert.equal(await readlink(join(machine.root, 'usr/local/lib/hyperkube/bin', name)), HYPERKUBE)
  })

  await t.test('and a second time nothing happens', async () => {
    assert.equal(await machine.node('install', config), 'everything is already installed\n')
    assert.deepEqual(await machine.asked(), [`is-enabled --quiet ${UNIT}`, `is-active --quiet ${UNIT}`])
  })

  await t.test('it can be stopped and started', async () => {
    await machine.node('stop')
    await machine.node('start')
    assert.deepEqual(await machine.asked(), [`stop ${UNIT}`, `start ${UNIT}`])
  })

  await t.test('it may become that of an agent, whose token few can read', async () => {
    const args = ['--server=https://manager.example/', '--token=to"ken', '--node-name=n1', '--label=a=b c']
    await machine.node('install', ...args)
    const unit = await machine.read(UNIT_FILE)
    assert.match(unit, /^ExecStart=\S+hyperkube node agent "--label=a=b c" --logs=journal --root=\S+$/m)
    assert.ok(!unit.includes('ken'))
    const file = 'etc/kubernetes/node-service.env'
    assert.equal(
      await machine.read(file),
      'CATTLE_SERVER="https://manager.example"\nCATTLE_TOKEN="to\\"ken"\nCATTLE_NODE_NAME="n1"\n',
    )
    assert.equal((await stat(join(machine.root, file))).mode & 0o777, 0o600)
    await machine.asked()
  })

  await t.test('and removed, with nothing left', async () => {
    await machine.node('remove')
    assert.deepEqual(await machine.asked(), [
      `stop ${UNIT}`,
      `is-enabled --quiet ${UNIT}`,
      `disable ${UNIT}`,
      'daemon-reload',
    ])
    for (const folder of ['etc/systemd/system', 'etc/kubernetes', 'usr/local/lib/hyperkube/bin'])
      assert.deepEqual(await readdir(join(machine.root, folder)), [], folder)
    await machine.node('remove')
  })

  await t.test('what would not run is not installed', async () => {
    await assert.rejects(machine.node('install', '--config=/nonexistent'), /Provide the settings of this node/)
    await assert.rejects(machine.node('install', '--server=http://plain.example', '--token=x'), /Set the server/)
    await assert.rejects(machine.read(UNIT_FILE))
  })
})
