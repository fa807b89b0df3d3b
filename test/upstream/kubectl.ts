/**
 * Compares our kubectl with upstream's on the same server. Both run the same command lines. Standard output, standard error
 * and exit code must be equal, except for times and generated names.
 *
 *     node test/upstream/kubectl.ts [--only PATTERN] [--scene PATTERN] [--sample N] [--seed N] [--program] [--show] [--kubeconfig FILE]
 *     node test/upstream/kubectl.ts --record [--scene PATTERN]
 *
 * It starts a cluster (`hyperkube up`, simulated nodes) with the objects of `kubectl/manifests/objects.yaml` in the
 * namespace `shown`. `--kubeconfig` uses a running cluster instead and leaves the created objects there. Our kubectl runs in
 * this process, which saves 2,000 starts; `--program` runs bin/hyperkube. `--only` selects command lines, `--scene` names of
 * scenes. `--sample` selects a number of lines, the same ones for the same seed. `--show` prints differing outputs whole.
 * `--record` writes upstream's output for some of the lines to `kubectl/answers`; `kubectl/*.test.ts` replay them. Exits
 * with 1 if a line differs that `kubectl/listed.ts` does not list. Needs Go once, to build upstream's kubectl.
 *
 * To add lines, write a text file in `kubectl/lines` or a table in `kubectl/tables`, and add its name to
 * `kubectl/scenes.ts`. A file has one or more scenes; `== name mode` begins one. The modes are:
 * - `reads`: both read the namespace `shown` and change nothing. Only ages are masked.
 * - `twins` (the default): each gets a new namespace, and both run line by line. Uids, times, addresses and generated names
 *   are masked.
 * - `turns`, for objects without a namespace: upstream's runs the whole scene, then ours does, in the same namespace emptied.
 *   The last lines of such a scene must undo its changes outside of the namespace.
 *
 * A line is the text behind `kubectl`, with quotes as in a shell. The kubeconfig selects the namespace; `-n` is not needed.
 * - `# text` is a comment. `!line` prepares: upstream's kubectl runs it on both sides and nothing is compared.
 * - `NAME=value line` sets the environment; `line < FILE` and `line <<< 'text'` give it standard input.
 * - `@1500ms line` interrupts a line that does not end by itself (SIGINT) after that time; `@1500ms/TERM` sends SIGTERM.
 * - `:cat FILE` compares a file that earlier lines have written.
 * - `$NS` is the namespace, `$NODE` a simulated node of the scene, `$M` the folder `kubectl/manifests`, `$K` a manifest with
 *   an object of every kind. `$DIR` is an empty folder for the scene: working directory, HOME and folder of the kubeconfig.
 *
 * Lines that only read (get, describe, events, …) are repeated for a moment if they differ, because controllers are still
 * working. Of help only headings, usage, commands, flags and their defaults are compared.
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
