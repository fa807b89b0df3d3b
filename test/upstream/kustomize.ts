/**
 * Kustomizations built by upstream's kubectl and by ours: `node test/upstream/kustomize.ts [--only TEXT]`. Each case of
 * `kustomize/cases.ts` becomes a folder; what is printed must be the same byte for byte, and errors too, but for the folder's
 * name. Ends with 1 when anything differs. Needs Go, once.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { parseArgs } from 'node:util'

import { kustomizeText } from '#kubectl/kustomization.ts'
import { realClock } from '#lib/clock.ts'

import { type Case, CASES } from './kustomize/cases.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })

/** Cases that stay different, by a part of their name, and why. */
const LISTED: Readonly<Record<string, string>> = {
  'ports: [{containerPort: 80, name: http}]':
    'upstream loses what a patch says of a port that it names without its protocol; ours keeps it',
  'replacement file': 'upstream cannot put a text where a number was ("cannot decode !!str as a !!int"); ours can',
}

async function lay(folder: string, files: Case): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
}

function theirs(kubectl: string, folder: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      kubectl,
      ['kustomize', folder],
      { env: { HOME: folder, PATH: process.env['PATH'] }, maxBuffer: 2 ** 26 },
      (error, out, err) => {
        resolve(error === null ? `${out}${err}` : err)
      },
    )
  })
}

async function ours(folder: string): Promise<string> {
  let warnings = ''
  const stderr = new Writable({
    write(chunk: Buffer, _encoding, done) {
      warnings += String(chunk)
      done()
    },
  })
  try {
    const text = await kustomizeText(folder, '/', { keepOrder: false, told: { stderr, clock: realClock } })
    return `${text}${warnings}`
  } catch (error) {
    const { message } = error as Error
    return `${warnings}error: ${message}${message.endsWith('\n') ? '' : '\n'}`
  }
}

/** Go's log begins with the time, klog with that and the process. */
function withoutTimes(text: string): string {
  return text.replaceAll(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /gm, '').replaceAll(/^I\d{4} [\d:.]+ +\d+ /gm, 'LOG ')
}

async function main(): Promise<number> {
  const { kubectl } = await upstreamPrograms(['kubectl'], (text) => void process.stdout.write(`${text}\n`))
  const bed = await realpath(await mkdtemp(join(tmpdir(), 'hyperkube-kustomize-')))
  let [different, listed] = [0, 0]
  const cases = Object.entries(CASES).filter(([name]) => options.only === undefined || name.includes(options.only))
  for (const [number, [name, files]] of cases.entries()) {
    const folder = join(bed, String(number))
    await lay(folder, files)
    const left = withoutTimes(await theirs(kubectl, folder))
      .replaceAll(/&\{0x[0-9a-f]+ <nil>\}/g, 'GENERATOR')
      .split('\n')
    const right = withoutTimes(await ours(folder))
      .replaceAll(/\w+Generator "[^"]*"/g, 'GENERATOR')
      .split('\n')
    const at = left.findIndex((line, index) => line !== right[index])
    if (at < 0 && left.length === right.length) continue
    if (Object.keys(LISTED).some((part) => name.includes(part))) {
      listed++
      continue
    }
    different++
    const where = at < 0 ? left.length : at
    process.stdout.write(
      `${name.replaceAll('\n', ' | ')}: line ${where + 1}\n  - ${left[where] ?? '(end)'}\n  + ${right[where] ?? '(end)'}\n`,
    )
  }
  await rm(bed, { recursive: true, force: true })
  process.stdout.write(`${cases.length} kustomizations, ${different} different, ${listed} listed with their reason\n`)
  return different === 0 ? 0 : 1
}

process.exitCode = await main()
