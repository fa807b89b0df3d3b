/** Collects facts about this machine: hardware, operating system, addresses and installed programs. */
import { access, readFile, statfs } from 'node:fs/promises'
import { arch, availableParallelism, hostname, networkInterfaces, release, totalmem } from 'node:os'
import { delimiter, join } from 'node:path'

import type { Clock } from '#lib/clock.ts'

import type { MachineFacts } from '../machine.ts'

/** Programs that nodes use. */
const PROGRAMS = ['containerd', 'runc', 'ip', 'nft', 'iptables', 'conntrack', 'mount', 'umount', 'etcd', 'etcdctl']
/** The folders of system programs, independent of the PATH of a login without a terminal. */
const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

export async function readFacts(clock: Clock, path: string): Promise<MachineFacts> {
  const [release_, meminfo, space, cgroup2, systemd] = await Promise.all([
    readText('/etc/os-release'),
    readText('/proc/meminfo'),
    statfs('/var/lib').catch(() => ({ bavail: 0, bsize: 0 })),
    isThere('/sys/fs/cgroup/cgroup.controllers'),
    isThere('/run/systemd/system'),
  ])
  const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))
  return {
    hostname: hostname(),
    system: systemName(release_),
    kernel: release(),
    architecture: arch(),
    cgroupVersion: cgroup2 ? 2 : 1,
    processors: availableParallelism(),
    memoryBytes: totalmem(),
    swapBytes: Number(/^SwapTotal:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? 0) * 1024,
    freeBytes: space.bavail * space.bsize,
    hasSystemd: systemd,
    now: clock.now(),
    addresses,
    programs: await findPrograms(path),
  }
}

function systemName(text: string): string {
  const value = (key: string): string => new RegExp(`^${key}="?([^"\\n]*)"?$`, 'm').exec(text)?.[1] ?? ''
  return `${value('ID') || 'unknown'} ${value('VERSION_ID')}`.trim()
}

async function findPrograms(path: string): Promise<string[]> {
  const folders = [...new Set([...path.split(delimiter).filter(Boolean), ...FOLDERS])]
  const found = await Promise.all(
    PROGRAMS.map(async (name) => {
      const exist = await Promise.all(folders.map((folder) => isThere(join(folder, name))))
      return exist.includes(true) ? [name] : []
    }),
  )
  return found.flat()
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
