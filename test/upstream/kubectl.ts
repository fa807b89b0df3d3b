/**
 * Two kubectls on one server: upstream's and ours run the same command lines, and standard output, standard error and exit
 * code must be the same but for times and names that the server makes up.
 *
 *     node test/upstream/kubectl.ts [--only PATTERN] [--scene PATTERN] [--sample N] [--seed N] [--program] [--show] [--kubeconfig FILE]
 *     node test/upstream/kubectl.ts --record [--scene PATTERN]
 *
 * It starts a cluster of its own (`hyperkube up`, simulated nodes) with the objects of `kubectl/manifests/objects.yaml` in the namespace
 * `shown`; `--kubeconfig` names one that runs already, which keeps what is put into it. Ours runs within this process, which saves 2,000 starts; `--program` runs bin/hyperkube. `--only` is of lines, `--scene` of
 * names of scenes; `--sample` takes so many lines, the same ones for the same seed; `--show` prints outcomes of lines that differ whole.
 * `--record` writes upstream's answers to a part of the lines into `kubectl/answers`; `kubectl/*.test.ts` replay them.
 * Ends with 1 when a line differs that `kubectl/listed.ts` does not name. `kubectl: [upstream's]` needs Go once, to be built.
 *
 * To add lines: a text file in `kubectl/lines`, or a table in `kubectl/tables` that makes them, and its name in
 * `kubectl/scenes.ts`. A file is one or more scenes; `== name mode` begins one. Modes:
 * - `reads`: both look at the namespace `shown` and change nothing; nothing but ages is masked.
 * - `twins` (when nothing is said): each has a fresh namespace of its own and both run line by line. Uids, times, addresses, generated names are masked.
 * - `turns`: upstream's runs the whole scene, its namespace is emptied by deletion, then ours runs it: for what is not in a
 *   namespace. The last lines of such a scene take back what it made elsewhere.
 *
 * A line is what stands behind `kubectl`, with quotes as in a shell. Its namespace is that of the kubeconfig; `-n` is not needed.
 * - `# text` is a comment. `!line` prepares: upstream's kubectl runs it on both sides and nothing is compared.
 * - `NAME=value line` sets the environment; `line < FILE` and `line <<< 'text'` give it standard input.
 * - `@1500ms line` is interrupted (SIGINT) after that time, for what does not end by itself; with `@1500ms/TERM` by SIGTERM.
 * - `:cat FILE` compares a file that lines before wrote.
 * - `$NS` is the namespace, `$NODE` a simulated node of its own, `$M` the folder `kubectl/manifests`, `$K` one with an object of every kind, `$DIR` the scene's own empty folder,
 *   which is the working directory, HOME and place of the kubeconfig (`$DIR/kubeconfig`).
 * What only looks (get, describe, events, …) is asked again for a moment when it differs: controllers are at work.
 * Of help only what is not prose is compared: headings, usage, commands, flags and their defaults.
 */
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { type Answer, readAnswers, recordedScenes, writeAnswers } from './kubectl/answers.ts'
import { judge, type Verdict } from './kubectl/judge.ts'
import { type Kubectl, program } from './kubectl/sides.ts'
import { openStage } from './kubectl/stage.ts'
import { summary } from './kubectl/summary.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    scene: { type: 'string' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
    kubeconfig: { type: 'string' },
    program: { type: 'boolean', default: false },
    show: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
  },
})

/** As many lines of a difference as say what it is. */
const SHOWN_LINES = 16

function report({ scene, line, differences, listed, outcomes }: Verdict): void {
  if (differences.length === 0 || (listed !== undefined && !options.show)) return
  const shown = options.show ? differences : differences.slice(0, SHOWN_LINES)
  process.stdout.write(`${scene}: kubectl ${line}\n${shown.map((text) => `  ${text}\n`).join('')}`)
  if (!options.show) return
  const [theirs, ours] = outcomes
  process.stdout.write(`<<<<<<< upstream\n${theirs.out}${theirs.err}=======\n${ours.out}${ours.err}>>>>>>> ours\n`)
}

async function compare(): Promise<number> {
  const { only, scene, sample, kubeconfig } = options
  const verdicts = await judge(
    {
      ...(only !== undefined && { only: new RegExp(only) }),
      ...(scene !== undefined && { scene: new RegExp(scene) }),
      ...(sample !== undefined && { sample: Number(sample) }),
      ...(kubeconfig !== undefined && { kubeconfig }),
      seed: Number(options.seed),
      jobs: Number(options.jobs),
      asProgram: options.program,
    },
    report,
  )
  const { text, isGood } = summary(verdicts, only === undefined && scene === undefined && sample === undefined)
  process.stdout.write(text)
  return isGood ? 0 : 1
}

/** Upstream's kubectl, which refuses to restart the same workload twice within a second. */
function patiently(upstream: Kubectl): Kubectl {
  return async (call) => {
    const outcome = await upstream(call)
    if (call.args[1] === 'restart') await sleep(realClock, 1000)
    return outcome
  }
}

/** Records the chosen scenes; answers of others stay. */
async function record(): Promise<number> {
  const { kubectl } = await upstreamPrograms(['kubectl'], (text) => void process.stdout.write(`${text}\n`))
  const scenes = await recordedScenes()
  const before = options.scene === undefined ? new Map<string, readonly Answer[]>() : await readAnswers()
  await using stage = await openStage(() => patiently(program(kubectl)))
  const answers = new Map<string, readonly Answer[]>()
  for (const scene of scenes) {
    const isChosen = options.scene === undefined || new RegExp(options.scene).test(scene.name)
    answers.set(scene.name, isChosen ? await stage.play(scene) : (before.get(scene.name) ?? []))
  }
  await writeAnswers(answers)
  process.stdout.write(`${answers.values().reduce((sum, { length }) => sum + length, 0)} answers recorded\n`)
  return 0
}

process.exitCode = await (options.record ? record() : compare())
