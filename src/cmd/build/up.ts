/** `hyperkube build up` and `build plan`. */
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { applyPlan, StepError } from '#provision/apply.ts'
import { observeCluster } from '#provision/observe.ts'
import { planCluster, type PlanOptions } from '#provision/plan.ts'
import { type Plan, stepsOf } from '#provision/step.ts'

import { BUILD_FLAGS } from './flags.ts'
import { planText, progressLine } from './progress.ts'
import { openSession, type Session } from './session.ts'

const RUN_FLAGS = {
  'update-only': flag(bool, false, 'leave etcd and the control plane alone'),
  'disable-port-check': flag(bool, false, 'do not check whether machines reach each other'),
}

export const up: Program = defineProgram({
  name: 'up',
  long:
    'up makes a cluster of the machines that cluster.yml names, or makes it what the file says now. What is as it should be is left ' +
    'alone, and what was interrupted is finished by running it again.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...RUN_FLAGS,
      init: flag(bool, false, 'only make certificates and write the state'),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const began = clock.elapsed()
    const say = (text: string): void => void stdout.write(`${text}\n`)
    const session = await openSession({ ...context, flags, stdout, stderr, clock, say }, closing, signal)
    await session.saveState(false)
    if (flags.init) return 0
    await session.saveKubeconfig()
    await bringProgram(session, say)
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const plan = await planFor(session, options, clock)
    for (const note of [...missing(session), ...plan.notes]) say(`note: ${note}`)
    refuse(plan)
    const site = { machine: (name: string) => session.connections.machine(name), api: session.api, clock }
    const told = (progress: Parameters<typeof progressLine>[0]): void => {
      const line = progressLine(progress)
      if (line !== undefined) say(line)
    }
    const { done, failures } = await applyPlan(plan, site, told, signal).catch((error: unknown) => {
      if (error instanceof StepError)
        throw new ProgramError(`${error.message}\nRun it again to finish the work.`, { cause: error })
      throw error
    })
    if (failures.length > 0) {
      const list = failures.map(({ message }) => `  ${message}`).join('\n')
      throw new ProgramError(`Provisioning incomplete:\n${list}\nRun it again to finish the work.`)
    }
    await session.saveState(true)
    const seconds = ((clock.elapsed() - began) / 1000).toFixed(1)
    say(
      done === 0
        ? `Nothing to do: everything is as it should be (${seconds} s).`
        : `Done: ${done} steps in ${seconds} s.`,
    )
    say(`The cluster is reached with ${session.files.kubeconfig}.`)
    return 0
  },
})

export const plan: Program = defineProgram({
  name: 'plan',
  long: 'plan shows what up would do, and changes nothing on any machine.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...RUN_FLAGS,
      output: flag(oneOf('text', 'json'), 'text', 'how it is written: text or json', { shorthand: 'o' }),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = (text: string): void => void stderr.write(`${text}\n`)
    const session = await openSession({ ...context, flags, stdout, stderr, clock, say }, closing, signal)
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const found = await planFor(session, options, clock)
    const steps = stepsOf(found).map(({ host, describe, action: { type } }) => ({ host, type, describe }))
    const text =
      flags.output === 'json'
        ? `${JSON.stringify({ steps, faults: found.faults, notes: found.notes }, undefined, 2)}\n`
        : planText(found)
    stdout.write(text)
    return found.faults.length === 0 ? 0 : 1
  },
})

async function planFor(
  session: Session,
  options: PlanOptions,
  clock: Parameters<typeof observeCluster>[1]['clock'],
): Promise<Plan> {
  const desired = await session.desired()
  const sight = { reach: (name: string) => session.connections.reach(name), api: session.api, clock }
  return planCluster(desired, await observeCluster(desired, sight), options)
}

/** To machines that have not this version of it. One that cannot be reached is told of by the plan. */
async function bringProgram({ cluster, connections }: Session, say: (text: string) => void): Promise<void> {
  const bring = async (name: string): Promise<void> => {
    if ((await connections.reach(name)) !== undefined) return
    await connections.machine(name)
    say(`[program] ${name}: sent`)
  }
  await Promise.allSettled(cluster.nodes.map(({ hostname_override: name }) => bring(name)))
}

/** What the file asks for and nobody does yet. */
function missing({ cluster, before }: Session): string[] {
  const { dns, ingress, monitoring, nodes } = cluster
  const providers = { dns: dns.provider, ingress: ingress.provider, monitoring: monitoring.provider }
  const names = new Set(nodes.map(({ hostname_override: name }) => name))
  const gone = before?.rkeConfig.nodes.filter(({ hostname_override: name }) => !names.has(name)) ?? []
  return [
    ...(cluster.services.etcd.backup_config.enabled ? ['etcd: no snapshots are taken by this version'] : []),
    ...Object.entries(providers)
      .filter(([, provider]) => provider !== 'none')
      .map(([key, provider]) => `${key}: ${provider} is not installed by this version`),
    ...gone.map(
      ({ hostname_override: name }) => `${name} is no longer in the file: it stays as it is, and in the cluster`,
    ),
  ]
}

function refuse({ faults }: Plan): void {
  if (faults.length > 0) throw new ProgramError(`Nothing was changed:\n${faults.map((text) => `  ${text}`).join('\n')}`)
}
