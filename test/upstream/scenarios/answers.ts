/**
 * Reads and writes recordings of upstream's kube-controller-manager: a text file in `answers` for each group of
 * scenarios. It begins with the fields that most objects of a kind have (`Pod *`); `==` begins a scenario. Below the
 * name of an object are its other fields, and with `!` those that it does not have. ` ×2` after a name counts objects
 * that differ only in generated names, and after a field how many of them have it, unless all do. `?` is a condition,
 * `>` an event, `~` a remark.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { GROUPS } from './index.ts'
import type { Recording } from './recording.ts'

/** By the name of the scenario. */
export type Answers = ReadonlyMap<string, Recording>

const FOLDER = join(import.meta.dirname, 'answers')

export async function readAnswers(): Promise<Answers> {
  const files = await readdir(FOLDER).catch((): string[] => [])
  const texts = await Promise.all(files.map((file) => readFile(join(FOLDER, file), 'utf8')))
  return new Map(texts.flatMap((text) => [...parseAnswers(text)]))
}

/** Drops recordings of scenarios that no group has. */
export async function writeAnswers(answers: Answers): Promise<void> {
  await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER)
  for (const [group, scenarios] of Object.entries(GROUPS)) {
    const own = scenarios.flatMap(({ name }): [string, Recording][] => {
      const recording = answers.get(name)
      return recording === undefined ? [] : [[name, recording]]
    })
    if (own.length > 0) await writeFile(join(FOLDER, `${group}.txt`), formatAnswers(new Map(own)))
  }
}

/** Objects of one kind and name, generated names being one. */
interface Objects {
  readonly kind: string
  readonly head: string
  readonly count: number
  /** How many of them have each field. */
  readonly fields: ReadonlyMap<string, number>
}

/** Of each kind. */
type Usual = ReadonlyMap<string, ReadonlySet<string>>

export function formatAnswers(answers: Answers): string {
  const scenarios = Array.from(answers, ([name, recording]) => ({ name, recording, all: objectsOf(recording) }))
  const usual = usualFields(scenarios.flatMap(({ all }) => all))
  const first = Array.from(usual, ([kind, fields]) => [`${kind} *`, ...Array.from(fields, (field) => `  ${field}`)])
  const lines = scenarios.flatMap(({ name, recording: { conditions, events, lost }, all }) => [
    `== ${name}`,
    ...all.flatMap((one) => formatObjects(one, usual)),
    ...conditions.map((line) => `? ${line}`),
    ...events.map((line) => `> ${line}`),
    ...lost.map((line) => `~ ${line}`),
  ])
  return `${[...first.flat(), ...lines].join('\n')}\n`
}

function objectsOf({ objects }: Recording): Objects[] {
  const split = objects.map((line) => /^(?<head>(?<kind>\S+) \S+) (?<field>.*)$/s.exec(line)?.groups ?? {})
  return Array.from(
    Map.groupBy(split, ({ head = '' }) => head),
    ([head, lines]) => {
      const kind = lines[0]?.['kind'] ?? ''
      const fields = new Map<string, number>()
      for (const { field = '' } of lines) fields.set(field, (fields.get(field) ?? 0) + 1)
      return { kind, head, count: Math.max(...fields.values()), fields }
    },
  )
}

/** The fields that more than half of the objects of a kind have. */
function usualFields(all: readonly Objects[]): Usual {
  const byKind = [...Map.groupBy(all, ({ kind }) => kind)].sort(([a], [b]) => (a < b ? -1 : 1))
  return new Map(
    byKind.map(([kind, ofKind]) => {
      const counts = new Map<string, number>()
      for (const { fields } of ofKind)
        for (const field of fields.keys()) counts.set(field, (counts.get(field) ?? 0) + 1)
      const usual = [...counts].filter(([, count]) => count > ofKind.length / 2).map(([field]) => field)
      return [kind, new Set(usual.sort())]
    }),
  )
}

function formatObjects({ kind, head, count, fields }: Objects, usual: Usual): string[] {
  const ofKind = usual.get(kind) ?? new Set()
  const missing = [...ofKind].filter((field) => !fields.has(field)).map((field) => `! ${field}`)
  const own = [...fields].filter(([field, having]) => !ofKind.has(field) || having !== count)
  return [`${head}${times(count, 1)}`, ...missing, ...own.map(([field, having]) => `  ${field}${times(having, count)}`)]
}

function times(count: number, usual: number): string {
  return count === usual ? '' : ` ×${count}`
}

export function parseAnswers(text: string): Answers {
  const answers = new Map<string, Recording>()
  const [first = '', ...scenarios] = text.split(/^== /m)
  const usual = new Map(blocksOf(first.split('\n')).map(({ head, lines }) => [head.split(' ')[0] ?? '', lines]))
  for (const scenario of scenarios) {
    const [name = '', ...lines] = scenario.split('\n')
    const marked = (mark: string): string[] =>
      lines.filter((line) => line.startsWith(`${mark} `)).map((line) => line.slice(2))
    const blocks = blocksOf(lines.filter((line) => !/^[?>~] /.test(line)))
    answers.set(name, {
      objects: blocks.flatMap((block) => parseObjects(block, usual)).sort(),
      conditions: marked('?'),
      events: marked('>'),
      lost: marked('~'),
    })
  }
  return answers
}

interface Block {
  readonly head: string
  readonly lines: string[]
}

function blocksOf(lines: readonly string[]): Block[] {
  const blocks: Block[] = []
  for (const line of lines.filter((each) => each !== '')) {
    if (/^[ !] /.test(line)) blocks.at(-1)?.lines.push(line)
    else blocks.push({ head: line, lines: [] })
  }
  return blocks
}

function parseObjects({ head, lines }: Block, usual: ReadonlyMap<string, readonly string[]>): string[] {
  const [name, count] = counted(head, 1)
  const fields = new Map<string, number>()
  for (const field of usual.get(name.split(' ')[0] ?? '') ?? []) fields.set(field.slice(2), count)
  for (const line of lines) {
    const [field, having] = counted(line.slice(2), count)
    if (line.startsWith('!')) fields.delete(field)
    else fields.set(field, having)
  }
  return [...fields].flatMap(([field, having]) => Array.from({ length: having }, () => `${name} ${field}`))
}

function counted(text: string, usual: number): [text: string, count: number] {
  const [, before = text, count = usual] = /^(.*) ×(\d+)$/.exec(text) ?? []
  return [before, Number(count)]
}
