/**
 * kubectl as one of hyperkube's programs: the room `kubectl` does everything. Published as a bundle of its own, which holds
 * nothing of the other programs.
 */
import { runKubectl } from '#kubectl/kubectl.ts'
import type { Program } from '#lib/program.ts'

import { runAlone } from './process.ts'

export const kubectl: Program = { name: 'kubectl', run: runKubectl }

/** Where the process begins when this is all of the program. */
export function start(): void {
  void runAlone(kubectl)
}
