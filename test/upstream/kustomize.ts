/**
 * Compares kustomizations built by our kubectl with upstream's: `node test/upstream/kustomize.ts [--only TEXT]
 * [--record]`. Each case of `kustomize/cases.ts` becomes a folder; output must be equal byte for byte, and errors too,
 * except for the folder's name. Exits with 1 on a difference. `--record` writes upstream's output to
 * `kustomize/answers.json`, which `kustomize/answers.test.ts` compares with ours. Needs Go, once.
 */
import { parseArgs } from 'node:util'

import { buildAll, buildOurs, buildUpstream, isListed, writeAnswers } from './kustomize/building.ts'
import { CASES } from './kustomize/cases.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, record: { type: 'boolean', default: false } },
})

async function main(): Promise<number> {
  const { kubectl } = await upstreamPrograms(['kubectl'], (text) => void process.stdout.write(`${text}\n`))
  const cases = Object.entries(CASES).filter(([name]) => options.only === undefined || name.includes(options.only))
  const theirs = await buildAll(buildUpstream(kubectl), cases)
  if (options.record) return record(theirs)
  const ours = await buildAll(buildOurs, cases)
  let [different, listed] = [0, 0]
  for (const [name, text] of theirs) {
    const [left, right] = [text.split('\n'), (ours.get(name) ?? '').split('\n')]
    const at = left.findIndex((line, index) => line !== right[index])
    if (at < 0 && left.length === right.length) continue
    if (isListed(name)) {
      listed++
      continue
    }
    different++
    const where = at < 0 ? left.length : at
    process.stdout.write(
      `${name.replaceAll('\n', ' | ')}: line ${where + 1}\n  - ${left[where] ?? '(end)'}\n  + ${right[where] ?? '(end)'}\n`,
    )
  }
  process.stdout.write(
    `${cases.length} kustomizations, ${different} differ from upstream, ${listed} with a listed reason\n`,
  )
  return different === 0 ? 0 : 1
}

async function record(answers: ReadonlyMap<string, string>): Promise<number> {
  await writeAnswers(answers)
  process.stdout.write(`${answers.size} answers recorded\n`)
  return 0
}

process.exitCode = await main()
