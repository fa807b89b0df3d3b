/** kubectl as one of hyperkube's programs: the room `kubectl` does everything. */
import { runKubectl } from '#kubectl/kubectl.ts'
import type { Program } from '#lib/program.ts'

export const kubectl: Program = { name: 'kubectl', run: runKubectl }
