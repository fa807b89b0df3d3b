/**
 * The name of the container image of this program. Nodes of `hyperkube build` need no registry for it, because each
 * node builds it from its copy of the program.
 */
import { hyperkubeVersion } from './version.ts'

export const OWN_REPOSITORY = 'hyperkube.local/hyperkube'

/** Its arguments are those of `hyperkube`. */
export function ownImage(): string {
  return `${OWN_REPOSITORY}:v${hyperkubeVersion()}`
}
