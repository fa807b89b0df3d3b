/**
 * Creates a separate disk for the store: ext4 on a loop image. The disk can lose power, which loses unflushed data, or
 * fill up. Needs root. The process unmounts it at exit.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { pause } from './pause.ts'

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: no page and no journal block is written any more. */
const CUT_POWER =
  'open my $d, "<", $ARGV[0] or die "$!"; my $how = pack("L", 2); ioctl($d, 0x8004587d, $how) or die "$!"'
const UMOUNT_ATTEMPTS = 100
/** Where Debian keeps what administrators use. */
const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`

const disks = new Set<Disk>()
process.on('exit', () => {
  for (const disk of disks) disk.remove()
})

/** Why there can be no such disk here; undefined when there can. */
export function whyNoDisk(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can mount a loop image'
  for (const program of ['mkfs.ext4', 'losetup', 'perl']) {
    if (spawnSync('sh', ['-c', `command -v ${program}`], { env: { PATH } }).status !== 0)
      return `${program} is not installed`
  }
  try {
    new Disk(16).remove()
    return undefined
  } catch (error) {
    return `no loop image can be mounted: ${String(error)}`
  }
}

export class Disk {
  readonly #folder = mkdtempSync(join(tmpdir(), 'reliability-disk-'))
  readonly #image = join(this.#folder, 'image')
  readonly mount: string = join(this.#folder, 'mount')

  constructor(mebibytes: number) {
    disks.add(this)
    try {
      writeFileSync(this.#image, '')
      truncateSync(this.#image, mebibytes << 20)
      run('mkfs.ext4', '-q', '-F', '-m', '0', this.#image)
      run('mkdir', this.mount)
      this.#mountImage()
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** From now on no write reaches the disk. Flushed data is on it. */
  cutPower(): void {
    run('perl', '-e', CUT_POWER, this.mount)
  }

  /** Remounts the disk as after a power failure, with only the flushed data. No process may have files open on it. */
  async restorePower(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (spawnSync('umount', [this.mount], { env: { PATH } }).status === 0) break
      if (attempt === UMOUNT_ATTEMPTS) throw new Error(`Cannot unmount "${this.mount}"`)
      await pause(20)
    }
    this.#mountImage()
  }

  /** Leaves `freeBytes` on it. */
  fill(freeBytes: number): void {
    const { bavail, bsize } = statfsSync(this.mount)
    const bytes = bavail * bsize - freeBytes
    if (bytes > 0) run('fallocate', '-l', String(bytes), join(this.mount, 'filler'))
  }

  free(): void {
    rmSync(join(this.mount, 'filler'), { force: true })
  }

  /** Unmounts it and removes the image; harmless when repeated. */
  remove(): void {
    disks.delete(this)
    spawnSync('umount', ['-l', this.mount], { env: { PATH }, stdio: 'ignore' })
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #mountImage(): void {
    // The loop device goes with the mount.
    run('mount', '-o', 'loop,noatime', this.#image, this.mount)
  }
}

function run(program: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { env: { PATH } })
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr.toString().trim()}`)
}
