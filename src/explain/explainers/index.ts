/** Lists the explainers of objects. The first one that applies to an object explains it. */
import type { Explainer } from '../explainer.ts'
import { scheduling } from './scheduling.ts'
import { volume } from './volume.ts'

export const EXPLAINERS: readonly Explainer[] = [scheduling, volume]
