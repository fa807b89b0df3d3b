/**
 * Writes `<group>/answers.json`: sends every case to a running kube-apiserver v1.36.4 with defaults and records the
 * responses. `node test/refusals/record.ts --server URL --token T [group …]`; `--print` only prints.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock } from '#lib/clock.ts'

import { type Asker, createAsker, refusalIn } from './asking.ts'
import { type Answers, answersKey, groupFolder, type KindCases, type Refused } from './case.ts'
import { everyCase } from './index.ts'

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { server: { type: 'string' }, token: { type: 'string' }, print: { type: 'boolean' } },
  })
  const { server: url = 'https://127.0.0.1:6443', token = '', print = false } = values
  const asker = createAsker({ url, token, clock: realClock })
  const wanted = everyCase.filter(({ kind }) => positionals.length === 0 || positionals.includes(groupFolder(kind)))
  let failures = 0
  for (const [folder, ofGroup] of Map.groupBy(wanted, ({ kind }) => groupFolder(kind))) {
    const answers: Answers = {}
    for (const cases of ofGroup) {
      const { refused, problems } = await recordKind(asker, cases)
      answers[answersKey(cases.kind)] = refused
      failures += problems.length
      for (const problem of problems) process.stderr.write(`${cases.kind.kind}: ${problem}\n`)
    }
    const text = `${JSON.stringify(answers, null, 2)}\n`
    if (print) process.stdout.write(text)
    else writeFileSync(join(import.meta.dirname, folder, 'answers.json'), text)
  }
  await asker.close()
  return failures === 0 ? 0 : 1
}

interface Recording {
  readonly refused: Record<string, Refused>
  readonly problems: readonly string[]
}

async function recordKind(asker: Asker, cases: KindCases): Promise<Recording> {
  const refused: Record<string, Refused> = {}
  const problems: string[] = []
  const valid = await asker.askValid(cases)
  if (valid.code !== 201) problems.push(`the valid object is refused: ${JSON.stringify(valid.body)}`)
  for (const refusal of cases.refused) {
    try {
      refused[refusal.why] = refusalIn(await asker.ask(cases, refusal))
    } catch (error) {
      problems.push(`${refusal.why}: ${(error as Error).message}`)
    }
  }
  for (const trial of cases.taken ?? []) {
    const { code, body } = await asker.ask(cases, trial)
    if (code >= 400) problems.push(`${trial.why}: refused: ${JSON.stringify(body)}`)
  }
  return { refused, problems }
}

process.exitCode = await main()
