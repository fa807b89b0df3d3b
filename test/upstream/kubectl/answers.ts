/**
 * Reads and writes the recorded output of upstream's kubectl: a text file in `answers` for each file of command lines.
 * `==` begins a scene, `$` a command line; below it are standard output (`>`), standard error (`!`) and an exit code
 * that is not 0 (`=`). `>~` and `!~` mark a last line without a line end.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { LISTED } from './listed.ts'
import type { Mode, Scene } from './scene.ts'
import { everyScene } from './scenes.ts'
import type { Outcome } from './sides.ts'

/** A line and its outcome, without what may differ from run to run. */
export interface Answer extends Outcome {
  readonly line: string
}

/** By the name of the scene, in the order in which they were recorded. */
export type Answers = ReadonlyMap<string, readonly Answer[]>

const FOLDER = join(import.meta.dirname, 'answers')

/** Scenes whose lines wait for signals or for real time, or print the nodes, which change with time. */
const LEFT_OUT = /^(?:signals|watching|waiting)(?:\/|$)|^cluster-info\/(?:dump|managed-fields)$/
/**
 * Lines that depend on where pods were scheduled or on how much time has passed;
 * lines that wait for seconds; and lines that print much of what others print.
 */
const LEFT_OUT_LINES = new RegExp(
  [
    'describe nodes|get events -A --no-headers -o name|completion .*',
    'apply (?:--force )?-f \\$M/immutable2.yaml',
    'describe (?:clusterroles|clusterrolebindings|apiservices|flowschemas|pods -A|pods --chunk-size=1|pods,svc)',
    'explain (?:deploy|pods --output=plaintext-openapiv2) --recursive',
    'api-resources (?:-o JSON|.* -o wide|-o yaml)',
  ]
    .map((lines) => `^(?:${lines})$`)
    .join('|'),
)
/** Of these, so many lines or scenes stand for all. */
const SAMPLES: readonly (readonly [scenes: RegExp, every: number])[] = [
  [/^completion\//, 3],
  [/^kinds\/explain$/, 15],
  [/^kinds\/[A-Z]/, 24],
  [/^mistakes\/flags$/, 8],
]

/** Scenes with pods and their controllers, which are replayed apart because that takes longest. */
export const ABOUT_WORKLOADS: RegExp = /^(?:get|kinds|nodes|pods|record|rollout|set)(?:\/|$)/

/** The scenes that are recorded. */
export async function recordedScenes(): Promise<Scene[]> {
  const scenes = (await everyScene()).filter(({ name }) => !LEFT_OUT.test(name))
  const chosen = scenes.flatMap((scene, at) => {
    const every = SAMPLES.find(([names]) => names.test(scene.name))?.[1] ?? 1
    const lines = scene.lines.filter(
      (line) => !LEFT_OUT_LINES.test(line) && !LISTED.some((one) => one.lines.test(line)),
    )
    if (scene.mode !== 'reads') return at % every === 0 ? [{ ...scene, lines }] : []
    return [{ ...scene, lines: lines.filter((_, line) => line % every === 0) }]
  })
  return chosen.toSorted((one, other) => MODES.indexOf(one.mode) - MODES.indexOf(other.mode))
}

/** Scenes that change nothing come first, so that they find only what was there at the start. */
const MODES: readonly Mode[] = ['reads', 'twins', 'turns']

export async function readAnswers(): Promise<Answers> {
  const texts = (await readdir(FOLDER)).sort().map((file) => readFile(join(FOLDER, file), 'utf8'))
  return new Map((await Promise.all(texts)).flatMap((text) => [...parseAnswers(text)]))
}

export async function writeAnswers(answers: Answers): Promise<void> {
  await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER)
  for (const [file, ofFile] of Map.groupBy(answers, ([scene]) => scene.split('/')[0] ?? scene)) {
    await writeFile(join(FOLDER, `${file}.txt`), ofFile.map(([scene, list]) => formatScene(scene, list)).join(''))
  }
}

function formatScene(scene: string, answers: readonly Answer[]): string {
  return `== ${scene}\n${answers.map(formatAnswer).join('')}`
}

function formatAnswer({ line, code, out, err }: Answer): string {
  return `$ ${line}\n${marked('>', out)}${marked('!', err)}${code === 0 ? '' : `= ${code}\n`}`
}

function marked(mark: string, text: string): string {
  const lines = text.split('\n')
  const last = lines.pop() ?? ''
  return `${lines.map((line) => `${mark} ${line}\n`).join('')}${last === '' ? '' : `${mark}~${last}\n`}`
}

export function parseAnswers(text: string): Answers {
  const scenes = new Map<string, (Answer & { code: number; out: string; err: string })[]>()
  let answers: ReturnType<typeof scenes.get> = []
  for (const line of text.split('\n')) {
    const [mark, rest] = [line.slice(0, 2), line.slice(2)]
    const answer = answers?.at(-1)
    if (mark === '==') scenes.set(rest.trim(), (answers = []))
    else if (mark === '$ ') answers?.push({ line: rest, code: 0, out: '', err: '' })
    else if (answer === undefined) continue
    else if (mark[0] === '>') answer.out += rest + (mark === '>~' ? '' : '\n')
    else if (mark[0] === '!') answer.err += rest + (mark === '!~' ? '' : '\n')
    else if (mark === '= ') answer.code = Number(rest)
  }
  return scenes
}
