/**
 * Runs kubectl as a program of hyperkube; src/kubectl implements it. It is also published as a separate bundle without
 * the other programs.
 */
import { runKubectl } from '#kubectl/kubectl.ts'
import type { Program } from '#lib/program.ts'

import { runAlone } from './process.ts'

export const kubectl: Program = { name: 'kubectl', run: runKubectl }

/** The start time of the process, if the process runs only this program. */
export function start(): void {
  void runAlone(kubectl)
}
