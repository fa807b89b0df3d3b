/**
 * Starts an emulated Debian machine with systemd and cgroup v2, reached over ssh on the loopback. Tests use it for what
 * the host cannot do: other cgroup versions, a reboot, a power cut. It runs ten times as slowly. The root file system
 * is created once (debootstrap) and cached; each machine has a separate disk. Needs root, qemu-system-x86, debootstrap,
 * mke2fs and ssh.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { freePort } from './kube-apiserver.ts'

const run = promisify(execFile)
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'vm')
/** Another name where PACKAGES are others. */
const ROOT = join(CACHE, 'rootfs-2')
const SUITE = 'bookworm'
const PACKAGES =
  'systemd-sysv udev dbus kmod procps openssh-server iproute2 iputils-ping ca-certificates libatomic1 linux-image-cloud-amd64 initramfs-tools ' +
  'containerd runc crun containernetworking-plugins nftables iptables conntrack mount util-linux'
const DISK_GB = 10
const BOOT_MS = 300_000
const LOOK_MS = 1000

export interface MachineOptions {
  /** For the disk, the key and the log of the console. */
  readonly folder: string
  /** Files to be there from the beginning: where they are here, and there. */
  readonly files?: Readonly<Record<string, string>>
  readonly memoryMb?: number
  /** Ports of the machine that are to be reached. */
  readonly ports?: readonly number[]
  /** A key pair that its root takes, by the path of the private half; default: one of its own. */
  readonly key?: string
  /** Its name. Default: `vm`. */
  readonly name?: string
  /** Its one network, instead of one behind this machine: others of the same bridge reach it at the address, and so does this one. */
  readonly network?: {
    readonly bridge: string
    /** With the length of the prefix. */
    readonly address: string
    readonly gateway: string
  }
}

export interface VirtualMachine {
  /** Where a port of the machine is on this one's loopback. */
  port(of: number): number
  /** The output of a command line in its shell. Rejects if the command fails. */
  shell(line: string, options?: { readonly input?: string; readonly timeoutMs?: number }): Promise<string>
  /** Takes the power away. */
  cut(): Promise<void>
  /** Resolves when it answers. */
  start(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Why there can be none here. */
export function whyNoMachine(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'only for Linux on x86-64'
  if (process.getuid?.() !== 0) return 'not root'
  const missing = ['qemu-system-x86_64', 'debootstrap', 'mke2fs', 'ssh', 'ssh-keygen'].filter((name) => !isThere(name))
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`
}

function isThere(program: string): boolean {
  return ['/usr/bin', '/usr/sbin', '/bin', '/sbin'].some((folder) => existsSync(join(folder, program)))
}

/** A machine that answers. Rejects when it does not within five minutes. */
export async function startMachine(options: MachineOptions): Promise<VirtualMachine> {
  await makeRoot()
  await mkdir(options.folder, { recursive: true })
  await makeDisk(options)
  const ports = new Map<number, number>()
  for (const port of [22, ...(options.ports ?? [])]) ports.set(port, await freePort())
  const machine = new Machine(options, ports)
  await machine.start()
  return machine
}

/** Made beside its name and renamed, so that one cut short is never taken for whole. */
async function makeRoot(): Promise<void> {
  if (existsSync(ROOT)) return
  await mkdir(CACHE, { recursive: true })
  const making = `${ROOT}.making`
  await rm(making, { recursive: true, force: true })
  const flags = ['--variant=minbase', `--include=${PACKAGES.replaceAll(' ', ',')}`]
  process.stderr.write('making the file system of virtual machines (once; minutes)\n')
  execFileSync('debootstrap', [...flags, SUITE, making], { stdio: ['ignore', 'ignore', 'inherit'] })
  await rename(making, ROOT)
}

const NETWORK = '[Match]\nName=en* eth*\n[Network]\nDHCP=ipv4\n'
/** Log-in needs neither the host's clock nor the network, and tests start containerd themselves. */
const SETTINGS: Readonly<Record<string, string>> = {
  'etc/hostname': 'vm\n',
  'etc/hosts': '127.0.0.1 localhost vm\n',
  'etc/resolv.conf': 'nameserver 10.0.2.3\n',
  'etc/fstab': '/dev/vda / ext4 defaults 0 1\n',
  'etc/systemd/network/20-wired.network': NETWORK,
  'etc/ssh/sshd_config.d/root.conf': 'PermitRootLogin prohibit-password\nUseDNS no\n',
}

/** Settings of a machine with a name and a network of its own. */
function settingsOf({ name = 'vm', network }: MachineOptions): Readonly<Record<string, string>> {
  const named = { ...SETTINGS, 'etc/hostname': `${name}\n`, 'etc/hosts': `127.0.0.1 localhost ${name}\n` }
  if (network === undefined) return named
  const { address, gateway } = network
  const wired = `[Match]\nName=en* eth*\n[Network]\nAddress=${address}\nGateway=${gateway}\n`
  return { ...named, 'etc/systemd/network/20-wired.network': wired, 'etc/resolv.conf': `nameserver ${gateway}\n` }
}

/** Creates a file system with the cached files, the settings and the requested files. */
async function makeDisk(options: MachineOptions): Promise<void> {
  const { folder, files = {} } = options
  const root = join(folder, 'root')
  await rm(root, { recursive: true, force: true })
  await run('cp', ['-a', '--reflink=auto', ROOT, root])
  for (const [name, text] of Object.entries(settingsOf(options))) {
    await mkdir(join(root, name, '..'), { recursive: true })
    await rm(join(root, name), { force: true })
    await writeFile(join(root, name), text)
  }
  const { key = join(folder, 'key') } = options
  if (options.key === undefined) {
    await rm(key, { force: true })
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
  }
  await mkdir(join(root, 'root', '.ssh'), { recursive: true })
  await cp(`${key}.pub`, join(root, 'root', '.ssh', 'authorized_keys'))
  await chmod(join(root, 'root', '.ssh'), 0o700)
  for (const [here, there] of Object.entries(files)) {
    await mkdir(join(root, there, '..'), { recursive: true })
    await run('cp', ['-aL', here, join(root, there)])
  }
  await run('chroot', [root, 'systemctl', 'enable', 'systemd-networkd'])
  await run('chroot', [root, 'systemctl', 'disable', 'containerd'])
  const boot = await readdir(join(root, 'boot'))
  for (const name of ['vmlinuz', 'initrd.img']) {
    const file = boot.find((each) => each.startsWith(name)) ?? ''
    await cp(join(root, 'boot', file), join(folder, name))
  }
  const disk = join(folder, 'disk.img')
  await rm(disk, { force: true })
  await run('mke2fs', ['-q', '-t', 'ext4', '-E', 'root_owner=0:0', '-d', root, disk, `${DISK_GB}G`])
  await rm(root, { recursive: true, force: true })
}

class Machine implements VirtualMachine {
  readonly #options: MachineOptions
  readonly #ports: ReadonlyMap<number, number>
  #process: ChildProcess | undefined

  constructor(options: MachineOptions, ports: ReadonlyMap<number, number>) {
    this.#options = options
    this.#ports = ports
  }

  port(of: number): number {
    return this.#ports.get(of) ?? 0
  }

  async start(): Promise<void> {
    const { folder, memoryMb = 3072 } = this.#options
    const flags: Readonly<Record<string, string>> = {
      accel: 'tcg,thread=multi',
      cpu: 'max',
      smp: '2',
      m: String(memoryMb),
      kernel: join(folder, 'vmlinuz'),
      initrd: join(folder, 'initrd.img'),
      append: 'root=/dev/vda rw console=ttyS0 panic=1 quiet',
      drive: `file=${join(folder, 'disk.img')},format=raw,if=virtio,cache=writeback`,
      ...(await this.#network()),
      display: 'none',
      serial: `file:${join(folder, 'console.log')}`,
      monitor: 'none',
    }
    const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, value])
    this.#process = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    const until = realClock.elapsed() + BOOT_MS
    while (!(await this.#answers())) {
      if (realClock.elapsed() > until || this.#process.exitCode !== null)
        throw new Error(`The machine does not answer; its console is in ${join(folder, 'console.log')}`)
      await sleep(realClock, LOOK_MS)
    }
  }

  async #network(): Promise<{ readonly netdev: string; readonly device: string }> {
    const { network, name = 'vm' } = this.#options
    if (network === undefined) {
      const forwards = [...this.#ports].map(([there, here]) => `hostfwd=tcp:127.0.0.1:${here}-:${there}`)
      return { netdev: ['user', 'id=n0', ...forwards].join(','), device: 'virtio-net-pci,netdev=n0' }
    }
    const link = `${network.bridge}-${name}`
    // One that was cut off has left its own.
    await run('ip', ['link', 'del', link]).catch(() => undefined)
    await run('ip', ['tuntap', 'add', 'mode', 'tap', 'name', link])
    await run('ip', ['link', 'set', link, 'master', network.bridge, 'up'])
    const last = Number(network.address.replace(/\/.*$/, '').split('.')[3])
    const mac = `52:54:00:00:00:${last.toString(16).padStart(2, '0')}`
    return {
      netdev: `tap,id=n0,ifname=${link},script=no,downscript=no`,
      device: `virtio-net-pci,netdev=n0,mac=${mac}`,
    }
  }

  async shell(line: string, { input = '', timeoutMs = 600_000 } = {}): Promise<string> {
    const { folder, network, key = join(folder, 'key') } = this.#options
    const flags = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'ConnectTimeout=30']
    const args = ['-i', key, ...flags.flatMap((flag) => ['-o', flag])]
    const where =
      network === undefined
        ? ['-p', String(this.port(22)), 'root@127.0.0.1']
        : [`root@${network.address.replace(/\/.*$/, '')}`]
    const done = run('ssh', [...args, ...where, line], { timeout: timeoutMs, maxBuffer: 64 << 20 })
    done.child.stdin?.end(input)
    return (await done).stdout
  }

  async cut(): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cut()
    const { network, name = 'vm' } = this.#options
    if (network !== undefined) await run('ip', ['link', 'del', `${network.bridge}-${name}`]).catch(() => undefined)
    await rm(this.#options.folder, { recursive: true, force: true })
  }

  async #answers(): Promise<boolean> {
    return this.shell('true', { timeoutMs: 40_000 }).then(
      () => true,
      () => false,
    )
  }
}
