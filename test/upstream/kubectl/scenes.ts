/**
 * The list of recorded kubectl scenarios; one that is missing here is not run. The folder `lines` has them as lists
 * of command lines, `tables` generates them from tables.
 */
import { type Scene, scenesOf } from './scene.ts'
import { describedKinds } from './tables/describe.ts'
import { explainedKinds, lifeOfKinds } from './tables/kinds.ts'
import { wrongArguments, wrongFlags } from './tables/mistakes.ts'

const FILES =
  'alpha applying applyset auth change cluster-info completion create create-more delete describe discovery explain files get identity kuberc names nodes plugins pods record replacing rollout set signals waiting watching'.split(
    ' ',
  )

const TABLES: readonly Scene[] = [describedKinds, explainedKinds, wrongArguments, wrongFlags, ...lifeOfKinds]

export async function everyScene(): Promise<Scene[]> {
  const written = await Promise.all(FILES.map(scenesOf))
  return [...written.flat(), ...TABLES]
}
