// All checks of the page. CHECK=text runs those with that text in their names.
import './views_test.mjs';
import './state_test.mjs';
import './data_test.mjs';
import { runAll } from './browser.mjs';

await runAll();
