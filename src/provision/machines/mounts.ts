/** Mounts below folders that go away. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/** At or below the folders, the last mounted first. Pure. */
export function mountPoints(mountinfo: string, folders: readonly string[]): string[] {
  const points = mountinfo.split('\n').flatMap((line) => {
    const point = line.split(' ')[4]
    return point === undefined ? [] : [point.replaceAll(/\\([0-7]{3})/g, (_, digits) => octal(String(digits)))]
  })
  return points.filter((point) => folders.some((each) => point === each || point.startsWith(`${each}/`))).toReversed()
}

function octal(digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 8))
}

/** Lazily: what somebody still looks into goes when they stop. */
export async function unmountBelow(folders: readonly string[]): Promise<void> {
  for (const point of mountPoints(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''), folders))
    await promisify(execFile)('umount', ['--lazy', point]).catch(() => undefined)
}
