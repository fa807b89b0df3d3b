/**
 * Starts test machines that are namespaces of this machine, each with a separate network, host name, files and sshd.
 * Needs root.
 */
import { execFile, spawn } from 'node:child_process'
import { chmod, copyFile, mkdir, readdir, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

const run = promisify(execFile)
/** Names that distinguish test beds that run at the same time. */
export interface Names {
  /** The prefix of links and network namespaces, at most four letters. */
  readonly prefix: string
  /** The host name of machines, without their number. */
  readonly host: string
  /** The first three numbers of addresses. */
  readonly network: string
}

const USUAL: Names = { prefix: 'hkb', host: 'm', network: '10.199.0' }

/**
 * The script is a constant; folder and name are arguments. The folder `upper` contains the changes of the machine;
 * containerd needs a real folder.
 */
const MACHINE = `
set -eu
folder=$1
hostname "$2"
mount --make-rprivate /
mkdir -p "$folder/upper" "$folder/work" "$folder/tree" "$folder/lib" "$folder/run"
mount -t tmpfs none "$folder/run"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/tree"
for each in proc sys dev; do mount --rbind "/$each" "$folder/tree/$each"; done
mkdir -p "$folder/run/sshd"
mount --rbind "$folder/run" "$folder/tree/run"
mount --bind "$folder/lib" "$folder/tree/var/lib"
mkdir -p "$folder/tree$folder/etc"
mount --bind "$folder/etc" "$folder/tree$folder/etc"
# Not chroot: programs that enter the mount namespace later, as runc does, must not see the files of this machine.
cd "$folder/tree"
pivot_root . .
umount -l .
exec chroot . /usr/sbin/sshd -D -e -f "$folder/etc/sshd_config"
`

export interface TestMachine {
  readonly name: string
  readonly address: string
  readonly folder: string
  readonly namespace: string
  /** Of its first process, by which others get in. */
  readonly pid: number
}

/** So many, on one bridge. All of it goes with `closing`. */
export async function makeMachines(
  folder: string,
  count: number,
  closing: AsyncDisposableStack,
  { prefix, host, network }: Names = USUAL,
): Promise<{ readonly machines: readonly TestMachine[]; readonly key: string }> {
  const key = join(folder, 'id')
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
  const bridge = `${prefix}0`
  await run('ip', ['link', 'add', bridge, 'type', 'bridge'])
  closing.defer(async () => void (await run('ip', ['link', 'del', bridge])))
  await run('ip', ['addr', 'add', `${network}.1/24`, 'dev', bridge])
  await run('ip', ['link', 'set', bridge, 'up'])
  const machines: TestMachine[] = []
  for (let number = 1; number <= count; number++) {
    const name = `${host}${number}`
    const plan = {
      name,
      address: `${network}.${10 + number}`,
      folder: join(folder, name),
      namespace: `${prefix}-${number}`,
    }
    const pid = await makeMachine(plan, { bridge, link: `${prefix}v${number}`, key }, closing)
    machines.push({ ...plan, pid })
  }
  return { machines, key }
}

interface Wiring {
  readonly bridge: string
  readonly link: string
  /** The key that it lets in. */
  readonly key: string
}

type MachinePlan = Omit<TestMachine, 'pid'>

/** Resolves to the first process. */
async function makeMachine(
  machine: MachinePlan,
  { bridge, link, key }: Wiring,
  closing: AsyncDisposableStack,
): Promise<number> {
  const { name, address, folder, namespace } = machine
  await run('ip', ['netns', 'add', namespace])
  closing.defer(async () => void (await run('ip', ['netns', 'del', namespace]).catch(() => undefined)))
  await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
  closing.defer(async () => void (await run('ip', ['link', 'del', link]).catch(() => undefined)))
  await run('ip', ['link', 'set', link, 'master', bridge, 'up'])
  await run('ip', ['-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0'])
  await run('ip', ['-n', namespace, 'link', 'set', 'lo', 'up'])
  await plugIn(machine)
  const etc = join(folder, 'etc')
  await mkdir(etc, { recursive: true })
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(etc, 'host')])
  await copyFile(`${key}.pub`, join(etc, 'authorized'))
  await chmod(join(etc, 'authorized'), 0o600)
  const config = [
    `ListenAddress ${address}`,
    `HostKey ${join(etc, 'host')}`,
    `AuthorizedKeysFile ${join(etc, 'authorized')}`,
    'PermitRootLogin prohibit-password',
    'PasswordAuthentication no',
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    '',
  ]
  await writeFile(join(etc, 'sshd_config'), config.join('\n'))
  const within = ['--net=/run/netns/' + namespace, 'unshare', '--mount', '--uts']
  const child = spawn('nsenter', [...within, 'sh', '-c', MACHINE, 'sh', folder, name], { stdio: 'ignore' })
  closing.defer(() => void child.kill('SIGTERM'))
  closing.defer(() => killAll(machine))
  const { pid = 0 } = child
  // The same process becomes sshd when the machine has its files.
  while (!(await readlink(`/proc/${pid}/exe`).catch(() => '')).includes('sshd')) {
    if (child.exitCode !== null) throw new Error(`Machine ${name} does not start`)
    await sleep(realClock, 50)
  }
  return pid
}

/** Disconnects the machine without notice. */
export async function unplug({ namespace }: TestMachine): Promise<void> {
  await run('ip', ['-n', namespace, 'link', 'set', 'eth0', 'down'])
}

export async function plugIn({ namespace, address }: MachinePlan): Promise<void> {
  await run('ip', ['-n', namespace, 'link', 'set', 'eth0', 'up'])
  await run('ip', ['-n', namespace, 'route', 'replace', 'default', 'via', address.replace(/\d+$/, '1')])
}

/** The output of a program on the machine. Rejects if it fails. */
export async function runIn({ pid }: TestMachine, program: string, ...args: string[]): Promise<string> {
  const within = ['-t', String(pid), '--mount', '--net', '--uts', '--wd=/', '--', program]
  const { stdout } = await run('nsenter', [...within, ...args], { maxBuffer: 1 << 26 })
  return stdout
}

/** As a crash would: everything but sshd, at once. */
export async function killAll(machine: MachinePlan): Promise<void> {
  for (const pid of await processesOf(machine)) process.kill(pid, 'SIGKILL')
}

/** Of one program, by how its command ends. */
export async function killProgram(machine: TestMachine, program: string): Promise<void> {
  for (const pid of await processesOf(machine)) {
    const path = await readlink(`/proc/${pid}/exe`).catch(() => '')
    if (path.endsWith(`/${program}`)) process.kill(pid, 'SIGKILL')
  }
}

/** All that are in its network, but for sshd: pods have networks of their own, and go with their containerd. */
async function processesOf({ namespace }: MachinePlan): Promise<number[]> {
  const { ino } = await stat(`/run/netns/${namespace}`)
  const found: number[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [network, program] = await Promise.all(
      ['ns/net', 'exe'].map((link) => readlink(`/proc/${pid}/${link}`).catch(() => '')),
    )
    if (network === `net:[${ino}]` && program?.includes('sshd') === false) found.push(Number(pid))
  }
  return found
}

/** Deletes a folder below /var/lib of the machine. */
export async function destroyData({ folder }: TestMachine, name: string): Promise<void> {
  await rm(join(folder, 'lib', name), { recursive: true, force: true })
}

/** The paths of files that the machine did not have at its creation. */
export async function filesOf({ folder }: TestMachine): Promise<string[]> {
  const found: string[] = []
  for (const layer of ['upper', 'lib']) {
    const { stdout } = await run('find', [join(folder, layer), '-type', 'f'], { maxBuffer: 1 << 26 })
    const prefix = layer === 'lib' ? '/var/lib' : ''
    found.push(
      ...stdout
        .split('\n')
        .filter(Boolean)
        .map((path) => prefix + path.slice(join(folder, layer).length)),
    )
  }
  return found.toSorted()
}
