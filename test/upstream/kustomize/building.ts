/** Builds a kustomization with our kubectl or upstream's, and prepares the output for comparison. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'

import { kustomizeText } from '#kubectl/manifests/kustomization.ts'
import { realClock } from '#lib/clock.ts'

import type { Case } from './cases.ts'

/** Recorded outputs of upstream's kubectl. Most cases share most of their documents, so each is stored once. */
interface Recorded {
  readonly documents: readonly string[]
  /** By the name of the case: positions in `documents`. */
  readonly answers: Readonly<Record<string, readonly number[]>>
}

const RECORDED = join(import.meta.dirname, 'answers.json')

/** By the name of the case. */
export async function readAnswers(): Promise<Map<string, string>> {
  const { documents, answers } = JSON.parse(await readFile(RECORDED, 'utf8')) as Recorded
  return new Map(Object.entries(answers).map(([name, parts]) => [name, parts.map((at) => documents[at]).join('')]))
}

export async function writeAnswers(texts: ReadonlyMap<string, string>): Promise<void> {
  const positions = new Map<string, number>()
  const positionOf = (document: string): number => {
    const known = positions.get(document) ?? positions.size
    positions.set(document, known)
    return known
  }
  const answers = Array.from(texts, ([name, text]) => [name, text.split(/^(?=---\n)/m).map(positionOf)] as const)
  const rows = answers.map((row) => `    ${JSON.stringify(row[0])}: [${row[1].join(', ')}]`)
  const documents = [...positions.keys()].map((document) => `    ${JSON.stringify(document)}`)
  const lines = ['{', '  "documents": [', documents.join(',\n'), '  ],', '  "answers": {', rows.join(',\n'), '  }', '}']
  await writeFile(RECORDED, `${lines.join('\n')}\n`)
}

/** Cases that stay different, by a part of their name, and why. */
const LISTED: Readonly<Record<string, string>> = {
  'ports: [{containerPort: 80, name: http}]':
    'upstream loses what a patch says of a port that it names without its protocol; ours keeps it',
  'replacement file': 'upstream cannot put a text where a number was ("cannot decode !!str as a !!int"); ours can',
}

export function isListed(name: string): boolean {
  return Object.keys(LISTED).some((part) => name.includes(part))
}

export type Build = (folder: string) => Promise<string>

/** Builds each case in a folder of its own; the outputs by name, without what differs from run to run. */
export async function buildAll(
  build: Build,
  cases: readonly (readonly [string, Case])[],
): Promise<Map<string, string>> {
  const bed = await realpath(await mkdtemp(join(tmpdir(), 'hyperkube-kustomize-')))
  const built = new Map<string, string>()
  try {
    for (const [number, [name, files]] of cases.entries()) {
      const folder = join(bed, String(number))
      await writeCase(folder, files)
      built.set(name, comparable(await build(folder), folder))
    }
  } finally {
    await rm(bed, { recursive: true, force: true })
  }
  return built
}

async function writeCase(folder: string, files: Case): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
}

export function buildUpstream(kubectl: string): Build {
  return (folder) =>
    new Promise((resolve) => {
      const env = { HOME: folder, PATH: process.env['PATH'] }
      execFile(kubectl, ['kustomize', folder], { env, maxBuffer: 2 ** 26 }, (error, out, err) => {
        resolve(error === null ? `${out}${err}` : err)
      })
    })
}

export async function buildOurs(folder: string): Promise<string> {
  let warnings = ''
  const stderr = new Writable({
    write(chunk: Buffer, _encoding, done) {
      warnings += String(chunk)
      done()
    },
  })
  try {
    const text = await kustomizeText(folder, '/', { keepOrder: false, output: { stderr, clock: realClock } })
    return `${text}${warnings}`
  } catch (error) {
    const { message } = error as Error
    return `${warnings}error: ${message}${message.endsWith('\n') ? '' : '\n'}`
  }
}

/** Without the folder, the times of Go's log and klog, and the names of generators, which upstream prints as addresses. */
function comparable(text: string, folder: string): string {
  return text
    .replaceAll(folder, 'FOLDER')
    .replaceAll(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /gm, '')
    .replaceAll(/^I\d{4} [\d:.]+ +\d+ /gm, 'LOG ')
    .replaceAll(/&\{0x[0-9a-f]+ <nil>\}|\w+Generator "[^"]*"/g, 'GENERATOR')
}
